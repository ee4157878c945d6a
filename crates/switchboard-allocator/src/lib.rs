//! mimalloc as the global allocator of the binary.
//!
//! The crate `mimalloc` asks for every allocation by its alignment. For a size that is not a power of two, that function
//! gives up as soon as the free list of the size is used up, takes a larger block instead and never refills the list: of 42
//! allocations of a send, nine cost five times as much as they should. This allocator names the alignment only where
//! it is larger than what every block has.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;

use libmimalloc_sys as mimalloc;

/// Blocks of mimalloc begin at multiples of this, whatever their size: a word is its smallest block, and all larger sizes are
/// multiples of it.
const EVERY_BLOCK: usize = align_of::<usize>();

/// mimalloc.
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

#[expect(unsafe_code, reason = "an allocator is unsafe to implement; each function passes on what it is given")]
// SAFETY: mimalloc keeps what `GlobalAlloc` asks for: blocks do not move or overlap, failures are null pointers, and nothing
// unwinds. A block has the size that was asked for, and the alignment, which is named unless every block has it. The alignment
// of a block does not change, so allocation and reallocation of one block always take the same branch, and `mi_free` takes
// blocks of both.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
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
        // SAFETY: as in `alloc`.
        unsafe {
            if layout.align() <= EVERY_BLOCK {
                mimalloc::mi_zalloc(layout.size()).cast()
            } else {
                mimalloc::mi_zalloc_aligned(layout.size(), layout.align()).cast()
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller gives back a block of this allocator.
        unsafe { mimalloc::mi_free(block.cast::<c_void>()) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller names a block of this allocator and the layout that it was allocated with.
        unsafe {
            if layout.align() <= EVERY_BLOCK {
                mimalloc::mi_realloc(block.cast::<c_void>(), size).cast()
            } else {
                mimalloc::mi_realloc_aligned(block.cast::<c_void>(), size, layout.align()).cast()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
