// Pages from the operating system: the one file that knows mmap and mprotect (VirtualAlloc and VirtualProtect on Windows).
#pragma once
#include <cstddef>

namespace dvm {

size_t page_size();
// Zeroed, writable pages, `bytes` rounded up to whole pages, aligned to `align` (a power of two, at least a page). Throws std::bad_alloc.
void* map_pages(size_t bytes, size_t align = 0);
// Addresses and nothing behind them: touching one ends the process. Throws std::bad_alloc.
void* reserve_pages(size_t bytes);
// `pages` and `bytes` as given to and returned by map_pages.
void unmap_pages(void* pages, size_t bytes) noexcept;
// Asks for huge pages behind the range; a refusal is no error.
void advise_huge(void* pages, size_t bytes) noexcept;
enum class Protection { kNone, kRead, kWrite };
// What may be done with whole pages from now on. Throws std::system_error.
void protect_pages(void* pages, size_t bytes, Protection allowed);
// Writes into pages that may only be read, and leaves them so for every thread; one call at a time. False: this system does not let a
// process do so; part of them may have been written, so the caller writes all of them another way.
bool write_protected(void* to, const void* from, size_t bytes) noexcept;

}  // namespace dvm
