//! Freed blocks, kept by classes of size: a few batches for each thread, and a few that all threads share.
//!
//! A block goes to the cache of the thread that frees it, whichever thread allocated it. Blocks that one thread allocates and another
//! frees come back in whole batches, by way of the shared ones: a thread takes a lock once for many blocks, and asks mimalloc
//! instead if another thread has the lock. A thread gives mimalloc the blocks that there is no room for, and all that it has when it ends.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::Mutex;

use libmimalloc_sys as mimalloc;

/// Larger blocks are not cached.
const LARGEST: usize = 16 * 1024;
/// All sizes of blocks are multiples of this, and so are the addresses that mimalloc gives them.
pub(crate) const STEP: usize = 16;
/// Sizes up to this have a class for every [`STEP`] bytes; above, four classes for every doubling.
const FINE: usize = 128;
const CLASSES: usize = FINE / STEP + 4 * (LARGEST.ilog2() - FINE.ilog2()) as usize;

/// A batch has this many bytes of blocks, if that is neither too few blocks nor too many. A thread keeps at most two batches of a class.
const BATCH_BYTES: usize = 16 * 1024;
const BATCH_BLOCKS_MIN: usize = 4;
const BATCH_BLOCKS_MAX: usize = 128;
/// How many batches of a class the threads share.
const SHARED_BATCHES_MAX: usize = 8;

/// Blocks that are taken for one another: all have the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class(usize);

impl Class {
    /// The class of the smallest blocks with room for `size` bytes.
    #[inline]
    pub(crate) const fn of_size(size: usize) -> Option<Self> {
        if size > LARGEST {
            return None;
        }
        let last = size.saturating_sub(1);
        if last < FINE {
            return Some(Self(last / STEP));
        }
        let doubling = last.ilog2() as usize;
        let quarter = (last >> (doubling - 2)) & 3;
        Some(Self(FINE / STEP + (doubling - FINE.ilog2() as usize) * 4 + quarter))
    }

    /// How large the blocks of this class are.
    pub(crate) const fn size(self) -> usize {
        if self.0 < FINE / STEP {
            return (self.0 + 1) * STEP;
        }
        let above = self.0 - FINE / STEP;
        (above % 4 + 5) << (above / 4 + FINE.ilog2() as usize - 2)
    }

    /// How many blocks of this class are a batch.
    fn batch(self) -> usize {
        (BATCH_BYTES / self.size()).clamp(BATCH_BLOCKS_MIN, BATCH_BLOCKS_MAX)
    }
}

/// What is written into a freed block. No class has smaller blocks.
struct Freed {
    /// The next block of the same batch.
    next: *mut Freed,
    /// In the first block of a shared batch: the next shared batch.
    next_batch: *mut Freed,
}

/// The blocks of one class that a thread keeps.
struct Kept {
    /// The block that was freed last, and so on.
    first: Cell<*mut Freed>,
    /// How many more blocks make this a batch.
    room: Cell<usize>,
    /// Another batch, or null.
    full: Cell<*mut Freed>,
}

#[derive(Clone, Copy)]
enum Stage {
    /// Nothing was freed on this thread yet: there is no room.
    New,
    Open,
    /// The thread ends: there is no room any more.
    Closed,
}

struct Cache {
    kept: [Kept; CLASSES],
    stage: Cell<Stage>,
}

thread_local! {
    // It has no destructor, so it can be used until the last moment of the thread, and without a check.
    static CACHE: Cache = const {
        Cache { kept: [const { Kept::new() }; CLASSES], stage: Cell::new(Stage::New) }
    };
    static AT_THREAD_END: AtThreadEnd = const { AtThreadEnd };
}

struct AtThreadEnd;

impl Drop for AtThreadEnd {
    fn drop(&mut self) {
        CACHE.with(Cache::close);
    }
}

/// A block of this class, or null if there is no memory. It is not inlined: the code of requests is many times as large as the
/// processor's cache for code.
#[inline(never)]
pub(crate) fn allocate(class: Class) -> *mut u8 {
    take(class).unwrap_or_else(|| {
        #[expect(unsafe_code, reason = "the functions of mimalloc are foreign ones")]
        // SAFETY: any size may be asked for.
        unsafe {
            mimalloc::mi_malloc(class.size()).cast()
        }
    })
}

/// A freed block of this class, if there is one.
#[inline]
pub(crate) fn take(class: Class) -> Option<*mut u8> {
    CACHE.with(|cache| {
        let kept = &cache.kept[class.0];
        if kept.first.get().is_null() && !kept.refill(class) {
            return None;
        }
        let block = kept.first.get();
        #[expect(unsafe_code, reason = "what a freed block holds is known here alone")]
        // SAFETY: the block is not null, belongs to the list, and `free` has written into it.
        let next = unsafe { (*block).next };
        prefetch(next);
        kept.first.set(next);
        kept.room.set(kept.room.get().wrapping_add(1));
        Some(block.cast())
    })
}

/// Tells the processor to load the block that the next allocation of this class will take.
#[inline]
fn prefetch(block: *const Freed) {
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "the instruction is offered as an unsafe function")]
    // SAFETY: prefetching has no effect but on caches, whatever the address is.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(block.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = block;
}

/// Keeps a block, or gives it back to mimalloc.
///
/// # Safety
///
/// The block is mimalloc's, begins at a multiple of [`STEP`], has the size of the class, and the program does not use it any more.
#[inline(never)]
#[expect(unsafe_code, reason = "a block is freed by its address")]
pub(crate) unsafe fn free(class: Class, block: *mut u8) {
    CACHE.with(|cache| {
        let kept = &cache.kept[class.0];
        let block = block.cast::<Freed>();
        if kept.room.get() == 0 && !cache.makes_room(class) {
            // SAFETY: the block is mimalloc's, and the program does not use it any more.
            return unsafe { mimalloc::mi_free(block.cast::<c_void>()) };
        }
        // SAFETY: the block is ours now, and large enough.
        unsafe { (*block).next = kept.first.get() };
        kept.first.set(block);
        kept.room.set(kept.room.get().wrapping_sub(1));
    });
}

impl Kept {
    const fn new() -> Self {
        Self { first: Cell::new(ptr::null_mut()), room: Cell::new(0), full: Cell::new(ptr::null_mut()) }
    }

    /// Goes on with another batch when the first one is used up.
    #[cold]
    #[inline(never)]
    fn refill(&self, class: Class) -> bool {
        let mut batch = self.full.replace(ptr::null_mut());
        // A thread that has never freed a block, or does not keep any, takes none of those that are shared either: it could not give
        // the rest of the batch back.
        if batch.is_null() && self.room.get() > 0 {
            batch = SHARED[class.0].try_lock().map_or(ptr::null_mut(), |mut shared| shared.take());
        }
        if batch.is_null() {
            return false;
        }
        self.first.set(batch);
        self.room.set(0);
        true
    }
}

impl Cache {
    /// Makes room for a block of this class: for all classes when it is the first block that this thread frees, and later by passing
    /// on a batch.
    #[cold]
    #[inline(never)]
    fn makes_room(&self, class: Class) -> bool {
        match self.stage.get() {
            Stage::New => {
                // What is freed while the destructor is being registered is not kept.
                self.stage.set(Stage::Closed);
                if AT_THREAD_END.try_with(|_| ()).is_err() {
                    return false;
                }
                self.stage.set(Stage::Open);
                for (class, kept) in self.kept.iter().enumerate() {
                    kept.room.set(Class(class).batch());
                }
                true
            }
            Stage::Open => {
                let kept = &self.kept[class.0];
                let batch = kept.full.replace(kept.first.replace(ptr::null_mut()));
                kept.room.set(class.batch());
                if !batch.is_null() && !SHARED[class.0].try_lock().is_ok_and(|mut shared| shared.put(batch)) {
                    give_back(batch);
                }
                true
            }
            Stage::Closed => false,
        }
    }

    /// Gives every block back to mimalloc and takes no more.
    fn close(&self) {
        self.stage.set(Stage::Closed);
        for kept in &self.kept {
            kept.room.set(0);
            give_back(kept.first.replace(ptr::null_mut()));
            give_back(kept.full.replace(ptr::null_mut()));
        }
    }
}

/// Gives all blocks of a batch back to mimalloc.
fn give_back(mut batch: *mut Freed) {
    while !batch.is_null() {
        #[expect(
            unsafe_code,
            reason = "what a freed block holds is known here alone, and mimalloc's functions are foreign ones"
        )]
        // SAFETY: the blocks of a batch belong to who has the batch, `free` has written into them, and each is given back once.
        unsafe {
            let next = (*batch).next;
            mimalloc::mi_free(batch.cast::<c_void>());
            batch = next;
        }
    }
}

/// Batches of one class that any thread may take.
struct Shared {
    first: *mut Freed,
    batches: usize,
}

#[expect(unsafe_code, reason = "addresses are not sent to other threads unless one says that they may be")]
// SAFETY: freed blocks belong to the list that has their addresses, and any thread that has the lock may use the list.
unsafe impl Send for Shared {}

static SHARED: [Mutex<Shared>; CLASSES] =
    [const { Mutex::new(Shared { first: ptr::null_mut(), batches: 0 }) }; CLASSES];

impl Shared {
    /// Takes a batch over, if there is room for it.
    fn put(&mut self, batch: *mut Freed) -> bool {
        if self.batches == SHARED_BATCHES_MAX {
            return false;
        }
        #[expect(unsafe_code, reason = "what a freed block holds is known here alone")]
        // SAFETY: the batch is not null, and now it is ours.
        unsafe {
            (*batch).next_batch = self.first;
        }
        self.first = batch;
        self.batches += 1;
        true
    }

    /// A batch for the caller, or null.
    fn take(&mut self) -> *mut Freed {
        let batch = self.first;
        if !batch.is_null() {
            #[expect(unsafe_code, reason = "what a freed block holds is known here alone")]
            // SAFETY: the batch is ours until it is returned, and `put` has written into its first block.
            unsafe {
                self.first = (*batch).next_batch;
            }
            self.batches -= 1;
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_the_smallest_class_with_room_for_it() {
        let mut before = Class(0);
        for size in 1..=LARGEST {
            let class = Class::of_size(size).expect("a class");
            assert!(class.size() >= size && class.0 < CLASSES, "{size}: {class:?}");
            if class != before {
                assert_eq!((class.0, before.size()), (before.0 + 1, size - 1), "{size} begins a class");
            }
            before = class;
        }
        assert_eq!((before.0, before.size()), (CLASSES - 1, LARGEST));
        assert_eq!(Class::of_size(LARGEST + 1), None);
        assert!(Class(0).size() >= size_of::<Freed>());
    }
}
