//! Memory from the operating system: address ranges in the lowest 16 GiB.
//!
//! A heap reserves its whole range once (address space costs nothing until it is touched) and never
//! moves it. All ranges lie below [`ADDRESS_LIMIT`], so that a reference fits into 32 bits.

use crate::error::HeapError;
use crate::reference::ADDRESS_LIMIT;

/// Bytes of a huge page; ranges are aligned to it, so that the kernel can use them.
pub const HUGE_PAGE: usize = 2 << 20;
const PAGE: usize = 4096;

/// Where the search for a free range begins: above what a program linked at a fixed low address
/// and its heap would occupy.
const SEARCH_START: usize = 1 << 30;

/// A reserved range of addresses, given back when dropped.
#[derive(Debug)]
pub struct Reservation {
    start: usize,
    bytes: usize,
}

impl Reservation {
    /// Reserves `bytes` (rounded up to huge pages), readable and writable, zero when first touched.
    pub fn new(bytes: usize, huge_pages: bool) -> Result<Reservation, HeapError> {
        let bytes = bytes.next_multiple_of(HUGE_PAGE);
        if bytes > ADDRESS_LIMIT - SEARCH_START {
            return Err(HeapError::LimitTooLarge { limit: bytes });
        }
        let start = find_range(bytes)?;
        let reservation = Reservation { start, bytes };
        if huge_pages {
            reservation.advise_huge(start, bytes);
        }
        Ok(reservation)
    }

    /// The first address.
    pub fn start(&self) -> usize {
        self.start
    }

    /// One past the last address.
    pub fn end(&self) -> usize {
        self.start + self.bytes
    }

    /// True when `address` lies in the range.
    pub fn contains(&self, address: usize) -> bool {
        (self.start..self.end()).contains(&address)
    }

    /// Asks for huge pages. Only advice: a kernel without them changes nothing but speed, so the
    /// answer is not looked at.
    fn advise_huge(&self, start: usize, bytes: usize) {
        // SAFETY: the range is ours, and the advice does not change its contents.
        unsafe {
            libc::madvise(start as *mut libc::c_void, bytes, libc::MADV_HUGEPAGE);
        }
    }

    /// Gives the pages wholly inside `start..end` back to the operating system; they read as zero
    /// afterwards.
    ///
    /// # Safety
    /// The range lies in this reservation, and nothing in it is used any more.
    pub unsafe fn release(&self, start: usize, end: usize) {
        let first = start.next_multiple_of(PAGE);
        let last = end & !(PAGE - 1);
        debug_assert!(first >= last || self.contains(first) && last <= self.end());
        if first < last {
            // SAFETY: by the caller's promise the pages are ours and unused.
            unsafe {
                libc::madvise(
                    first as *mut libc::c_void,
                    last - first,
                    libc::MADV_DONTNEED,
                );
            }
        }
    }
}

/// Has the operating system put memory behind the pages of `start..start + bytes` now, rather than
/// when they are first touched; their contents stay. Only advice, as for huge pages.
///
/// # Safety
/// The range lies in a reservation.
pub(crate) unsafe fn populate(start: usize, bytes: usize) {
    #[cfg(target_os = "linux")]
    // SAFETY: by the caller's promise the range is mapped; populating does not change contents.
    unsafe {
        libc::madvise(start as *mut libc::c_void, bytes, libc::MADV_POPULATE_WRITE);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, bytes);
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `find_range` and belongs to this value alone.
        unsafe {
            libc::munmap(self.start as *mut libc::c_void, self.bytes);
        }
    }
}

/// Tries candidate addresses from low to high; the kernel refuses those that overlap a mapping.
fn find_range(bytes: usize) -> Result<usize, HeapError> {
    let mut candidate = SEARCH_START;
    let mut last_error = std::io::Error::from_raw_os_error(libc::ENOMEM);
    while candidate + bytes <= ADDRESS_LIMIT {
        match map_at(candidate, bytes) {
            Ok(start) => return Ok(start),
            Err(error) => last_error = error,
        }
        // Small steps find the gaps between other heaps; a reservation is made once per heap, so
        // the number of attempts does not matter.
        candidate += HUGE_PAGE * 8;
    }
    Err(HeapError::Reserve {
        bytes,
        reason: last_error.to_string(),
    })
}

fn map_at(address: usize, bytes: usize) -> Result<usize, std::io::Error> {
    // SAFETY: MAP_FIXED_NOREPLACE never touches an existing mapping.
    let got = unsafe {
        libc::mmap(
            address as *mut libc::c_void,
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE
                | libc::MAP_ANONYMOUS
                | libc::MAP_NORESERVE
                | libc::MAP_FIXED_NOREPLACE,
            -1,
            0,
        )
    };
    if got == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    if got as usize != address {
        // A kernel older than the flag takes the address as a hint only.
        // SAFETY: this mapping was made just now and nobody knows of it.
        unsafe {
            libc::munmap(got, bytes);
        }
        return Err(std::io::Error::from_raw_os_error(libc::EEXIST));
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_do_not_overlap_and_read_zero() {
        let a = Reservation::new(1 << 20, true).unwrap();
        let b = Reservation::new(5 << 20, false).unwrap();
        assert!(a.end() <= b.start() || b.end() <= a.start());
        assert!(b.end() <= ADDRESS_LIMIT);
        // SAFETY: the address lies in `a`, which is mapped.
        let first = unsafe { *(a.start() as *const u64) };
        assert_eq!(first, 0);
    }

    #[test]
    fn more_than_references_can_name_is_an_error() {
        assert!(matches!(
            Reservation::new(ADDRESS_LIMIT, false),
            Err(HeapError::LimitTooLarge { .. })
        ));
    }
}
