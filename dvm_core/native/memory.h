// Pooled memory: blocks go back to free lists by size class and are handed out again warm, so a steady state has no page faults.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "types.h"

namespace dvm {

inline constexpr size_t kAlign = 128;

class Panels;

// What the memory log says about a buffer.
struct BufferTag {
  std::string name, cls;               // cls: "parameter", "activation", "gradient", "optimizer", "workspace", "snapshot"
  uint32_t place = 0;
  int64_t program = -1, instruction = -1;
  int64_t in_place_of = -1;            // log id of the buffer whose bytes it took over
  int64_t born = -1;                   // on the log's clock; -1: now
};

// One block. Destroyed: back to the pool, or to the device whose address it has (device_memory.h).
struct Storage {
  void* data = nullptr;
  size_t bytes = 0;                    // asked for
  size_t capacity = 0;                 // of its size class
  uint32_t reuse = 0;                  // times this address was handed out before
  int size_class = 0;                  // negative: memory of a device
  int64_t log_id = -1;                 // in the memory log, -1 if the log was off
  std::shared_ptr<Panels> panels;      // of a constant, which nobody writes; null: memory as any other
  Storage() = default;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  ~Storage();
};

// 128-byte aligned, contents undefined. Throws std::bad_alloc.
std::shared_ptr<Storage> allocate(size_t bytes, const BufferTag* tag = nullptr);
// The same, left out of the log (its parts are logged one by one).
std::shared_ptr<Storage> allocate_unlogged(size_t bytes);
// Gives all unused blocks back to the operating system.
void trim_memory();

struct MemoryStats {
  int64_t live = 0, peak = 0, cached = 0, blocks = 0, reuses = 0;
};
MemoryStats memory_stats();

// Copies the core made of whole tensors, and those it avoided by handing out a view or writing in place; for stats().
void count_copy(int64_t bytes);
void count_copy_avoided(int64_t times = 1);
struct CopyStats {
  int64_t bytes_copied = 0, copies = 0, copies_avoided = 0;
};
CopyStats copy_stats();

// ---- the memory log: off, it costs one relaxed load ---------------------------------------------------------------------------
struct BufferEvent {
  int64_t id = 0, bytes = 0;
  BufferTag tag;
  uintptr_t address = 0;
  uint32_t reuse = 0;
  int64_t step = 0, born = 0, freed = -1, born_ns = 0, freed_ns = -1;
};
void memory_log(bool enable);
bool memory_log_on();
// A buffer that is not a Storage (caller's memory, a workspace slot); returns its log id, or -1 when the log is off.
int64_t log_buffer(const void* address, int64_t bytes, const BufferTag& tag);
// Memory of the framework: the record of the same bytes and class that is already there, or a new one. A parameter is thus one buffer
// however often it is an input; it is freed when the last of its users has called log_freed, unless its class outlives a call.
int64_t log_external(const void* address, int64_t bytes, const BufferTag& tag);
void log_freed(int64_t id);
// What the framework's buffer at an address is.
void log_class(const void* address, const std::string& cls);
// The tensor that had the one buffer is about to get the other, a result that will be of that class. The first ends with its last user.
void log_replaced(const void* address, const void* by, const std::string& cls);
void log_name(int64_t id, const std::string& name);
// A buffer whose whole life is known (a slot of a finished launch's workspace). What it is in place of ends where it begins.
int64_t log_span(const void* address, int64_t bytes, const BufferTag& tag, int64_t born, int64_t freed, int64_t born_ns, int64_t freed_ns);
int64_t now_ns();                      // the log's and the hooks' clock: monotonic nanoseconds
// Buffers with id >= since, oldest first; the log keeps the last 65536.
std::vector<BufferEvent> memory_events(int64_t since);

// The clock of the log: instructions run so far, and the step set by set_step.
void advance_instructions(int64_t n);
int64_t instructions_run();
void set_step(int64_t step);
int64_t current_step();

}  // namespace dvm
