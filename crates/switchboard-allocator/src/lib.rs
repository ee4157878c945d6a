//! The global allocator of the binary: mimalloc, behind caches of freed blocks.
//!
//! mimalloc hands out the blocks of a page one after the other, and takes up freed ones only when it has come to the end. So a block
//! has often left the processor's caches when it is used again, and a request needs eighty of them. Here the block that was freed
//! last is used first. Freeing is short, too: Rust says how large a block is, and mimalloc would have to look it up.
//!
//! Where mimalloc is asked, it is asked by size alone. The crate `mimalloc` asks for every allocation by its alignment. For
//! a size that is not a power of two, that function gives up as soon as the free list of the size is used up, takes a larger block
//! instead and never refills the list.

mod cache;

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;

use libmimalloc_sys as mimalloc;

use crate::cache::Class;

/// Blocks of mimalloc begin at multiples of this, whatever their size.
const EVERY_BLOCK: usize = align_of::<usize>();

/// mimalloc, behind caches of freed blocks.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: switchboard_allocator::Allocator = switchboard_allocator::Allocator;
///
/// # fn main() {
/// assert_eq!(vec![1, 2, 3].len(), 3);
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Allocator;

/// The class of the blocks with this layout, if such blocks are cached.
///
/// It depends on nothing but the layout, so a block is allocated, reallocated and freed as one of the same class.
#[inline]
fn class_of(layout: Layout) -> Option<Class> {
    if layout.align() <= cache::STEP { Class::of_size(layout.size()) } else { None }
}

#[expect(unsafe_code, reason = "an allocator is unsafe to implement")]
// SAFETY: blocks come from mimalloc, which keeps what `GlobalAlloc` asks for: they do not move or overlap, failures are null
// pointers, and nothing unwinds. A block of a class has the size of the class, which is at least the size asked for; because it
// is a multiple of sixteen, mimalloc aligns the block to sixteen. Any other block has the size asked for, and the alignment, which is
// named unless every block has it. A freed block is in one cache or given back to mimalloc, and leaves the cache when it is handed
// out again. `mi_free` takes the blocks of every function of mimalloc.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if let Some(class) = class_of(layout) {
            return cache::allocate(class);
        }
        // SAFETY: any size may be asked for, and the alignment of a layout is a power of two.
        unsafe {
            if layout.align() <= EVERY_BLOCK {
                mimalloc::mi_malloc(layout.size()).cast()
            } else {
                mimalloc::mi_malloc_aligned(layout.size(), layout.align()).cast()
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if let Some(class) = class_of(layout)
            && let Some(block) = cache::take(class)
        {
            // SAFETY: the block has the size of its class, which is at least this.
            unsafe { block.write_bytes(0, layout.size()) };
            return block;
        }
        let size = class_of(layout).map_or(layout.size(), Class::size);
        // SAFETY: as in `alloc`.
        unsafe {
            if layout.align() <= EVERY_BLOCK {
                mimalloc::mi_zalloc(size).cast()
            } else {
                mimalloc::mi_zalloc_aligned(size, layout.align()).cast()
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match class_of(layout) {
            // SAFETY: the caller gives back a block of this layout, so it has the size of the class and nobody uses it any more.
            Some(class) => unsafe { cache::free(class, block) },
            // SAFETY: the caller gives back a block of this allocator.
            None => unsafe { mimalloc::mi_free(block.cast::<c_void>()) },
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the new size, rounded up to the alignment, is within the limits of a layout.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (class_of(layout), class_of(wanted)) {
            (Some(from), Some(to)) if from == to => block,
            (None, None) => {
                // SAFETY: the caller names a block of this allocator and the layout that it was allocated with.
                unsafe {
                    if layout.align() <= EVERY_BLOCK {
                        mimalloc::mi_realloc(block.cast::<c_void>(), size).cast()
                    } else {
                        mimalloc::mi_realloc_aligned(block.cast::<c_void>(), size, layout.align()).cast()
                    }
                }
            }
            _ => {
                // SAFETY: both blocks are at least as long as what is copied, and they are two. The old one is freed with the layout
                // that it was allocated with, and only when there is a new one.
                unsafe {
                    let moved = self.alloc(wanted);
                    if !moved.is_null() {
                        moved.copy_from_nonoverlapping(block, layout.size().min(size));
                        self.dealloc(block, layout);
                    }
                    moved
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[global_allocator]
    static ALLOCATOR: Allocator = Allocator;

    #[test]
    #[expect(unsafe_code, reason = "the functions of an allocator are unsafe to call")]
    fn blocks_have_their_alignment_and_keep_their_content() {
        for align in [1, 2, 4, 8, 16, 32, 64, 128, 4096] {
            for size in [1, 7, 8, 15, 24, 40, 100, 1000, 1023, 1025, 5000, 70_000] {
                let layout = Layout::from_size_align(size, align).expect("a layout");
                let mut blocks = Vec::new();
                for _ in 0..50 {
                    // SAFETY: the size is not zero, every block is used within its size and given back once.
                    unsafe {
                        let block = Allocator.alloc(layout);
                        assert!(!block.is_null() && block.addr().is_multiple_of(align), "{size} bytes at {align}");
                        block.write_bytes(0xA5, size);
                        let grown = Allocator.realloc(block, layout, size * 2 + 1);
                        assert!(
                            !grown.is_null() && grown.addr().is_multiple_of(align),
                            "{size} bytes at {align}, grown"
                        );
                        assert!((0..size).all(|at| grown.add(at).read() == 0xA5), "the content moves along");
                        grown.write_bytes(0x5A, size * 2 + 1);
                        let zeroed = Allocator.alloc_zeroed(layout);
                        assert!(zeroed.addr().is_multiple_of(align) && (0..size).all(|at| zeroed.add(at).read() == 0));
                        blocks.push((grown, zeroed));
                    }
                }
                for (grown, zeroed) in blocks {
                    let larger = Layout::from_size_align(size * 2 + 1, align).expect("a layout");
                    // SAFETY: both are blocks of this allocator, with the layouts that they have now.
                    unsafe {
                        Allocator.dealloc(grown, larger);
                        Allocator.dealloc(zeroed, layout);
                    }
                }
            }
        }
    }

    #[test]
    #[expect(unsafe_code, reason = "the functions of an allocator are unsafe to call")]
    fn the_block_that_was_freed_last_is_used_first() {
        let layout = Layout::from_size_align(100, 8).expect("a layout");
        // SAFETY: the sizes are not zero, and every block is given back once, with its layout.
        unsafe {
            let (one, two) = (Allocator.alloc(layout), Allocator.alloc(layout));
            Allocator.dealloc(one, layout);
            Allocator.dealloc(two, layout);
            assert_eq!((Allocator.alloc(layout), Allocator.alloc(layout)), (two, one));
            let shorter = Layout::from_size_align(97, 1).expect("a layout");
            assert_eq!(
                Allocator.realloc(two, layout, shorter.size()),
                two,
                "a size of the same class needs no other block"
            );
            Allocator.dealloc(two, shorter);
            Allocator.dealloc(one, layout);
        }
    }

    #[test]
    fn blocks_that_move_between_threads_keep_their_content() {
        let (give, take): (Vec<_>, Vec<_>) = (0..4).map(|_| mpsc::channel::<Vec<u8>>()).unzip();
        thread::scope(|scope| {
            for (seed, take) in (1_u64..).zip(take) {
                let give = give.clone();
                scope.spawn(move || {
                    let whole =
                        |block: Vec<u8>| assert!(block.iter().all(|byte| *byte == block[0]), "another block's bytes");
                    let mut random = seed;
                    for _ in 0..20_000 {
                        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                        let [fill, to, low, high, ..] = random.swap_bytes().to_ne_bytes();
                        let mut block = vec![fill; usize::from(u16::from_ne_bytes([low, high])) % 20_000 + 1];
                        block.extend([fill; 7]);
                        // A thread that has ended takes no more, and the block is freed here.
                        drop(give[usize::from(to) % 4].send(block));
                        take.try_iter().for_each(whole);
                    }
                });
            }
        });
    }
}
