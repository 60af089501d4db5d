#include "pages.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <system_error>

#ifdef _WIN32
#include <windows.h>
#else
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#include "fork.h"

namespace dvm {

static size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

#ifdef _WIN32

size_t page_size() {
  static const size_t size = [] {
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return static_cast<size_t>(info.dwPageSize);
  }();
  return size;
}

// VirtualAlloc aligns to 64 KiB, which is more than any caller's `align` but the huge-page one, and huge pages are not asked for here.
void* map_pages(size_t bytes, size_t) {
  void* p = VirtualAlloc(nullptr, round_up(bytes, page_size()), MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
  if (!p) throw std::bad_alloc();
  return p;
}
void* reserve_pages(size_t bytes) {
  void* p = VirtualAlloc(nullptr, round_up(bytes, page_size()), MEM_RESERVE, PAGE_NOACCESS);
  if (!p) throw std::bad_alloc();
  return p;
}
void unmap_pages(void* pages, size_t) noexcept { VirtualFree(pages, 0, MEM_RELEASE); }
void advise_huge(void*, size_t) noexcept {}
void protect_pages(void* pages, size_t bytes, Protection allowed) {
  constexpr DWORD flags[] = {PAGE_NOACCESS, PAGE_READONLY, PAGE_READWRITE};
  DWORD old;
  if (!VirtualProtect(pages, bytes, flags[static_cast<int>(allowed)], &old))
    throw std::system_error(static_cast<int>(GetLastError()), std::system_category(), "VirtualProtect");
}
bool write_protected(void*, const void*, size_t) noexcept { return false; }

#else

size_t page_size() {
  static const size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

void* map_pages(size_t bytes, size_t align) {
  bytes = round_up(bytes, page_size());
  const size_t slack = align > page_size() ? align : 0;
  if (bytes + slack < bytes) throw std::bad_alloc();
  void* raw = mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) throw std::bad_alloc();
  if (!slack) return raw;
  // Give back what lies before and after the aligned part, so that unmap_pages needs only the part itself.
  char* begin = static_cast<char*>(raw);
  char* part = reinterpret_cast<char*>(round_up(reinterpret_cast<uintptr_t>(begin), align));
  if (part > begin) munmap(begin, static_cast<size_t>(part - begin));
  const size_t after = static_cast<size_t>(begin + bytes + slack - (part + bytes));
  if (after) munmap(part + bytes, after);
  return part;
}

void* reserve_pages(size_t bytes) {
  void* p = mmap(nullptr, round_up(bytes, page_size()), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  return p;
}

void unmap_pages(void* pages, size_t bytes) noexcept { munmap(pages, round_up(bytes, page_size())); }

void advise_huge(void* pages, size_t bytes) noexcept {
#ifdef MADV_HUGEPAGE
  madvise(pages, bytes, MADV_HUGEPAGE);
#endif
}

void protect_pages(void* pages, size_t bytes, Protection allowed) {
  constexpr int flags[] = {PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE};
  if (mprotect(pages, round_up(bytes, page_size()), flags[static_cast<int>(allowed)]) != 0) throw std::system_error(errno, std::generic_category(), "mprotect");
}

#ifdef __linux__

// A process's own memory as a file: the kernel writes past the protection of private pages, as it does for a debugger, and no translation
// changes. mprotect there and back takes 3 us, and 25 where another thread of the process is on a processor and must be interrupted.
bool write_protected(void* to, const void* from, size_t bytes) noexcept {
  static int file = -1;
  static struct stat opened = {};
  static uint64_t opened_after = ~uint64_t{0};
  // A program may close descriptors it does not know, and the number may be a file of its own by now.
  const auto is_ours = [] {
    struct stat now = {};
    return file >= 0 && fstat(file, &now) == 0 && now.st_dev == opened.st_dev && now.st_ino == opened.st_ino;
  };
  if (opened_after != forks()) {  // a child's descriptor is still of its parent's memory
    if (is_ours()) close(file);
    file = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    if (file >= 0 && fstat(file, &opened) != 0) return false;
    opened_after = forks();
  }
  if (!is_ours()) return false;
  if (pwrite(file, from, bytes, static_cast<off_t>(reinterpret_cast<uintptr_t>(to))) == static_cast<ssize_t>(bytes) && std::memcmp(to, from, bytes) == 0)
    return true;
  if (is_ours()) close(file);  // refused, and so it will be again
  file = -1;
  return false;
}

#else

bool write_protected(void*, const void*, size_t) noexcept { return false; }

#endif

#endif

}  // namespace dvm
