// What capture hands to the compiler: a program is the instructions of one flush; a segment is a compiled range of them.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels.h"
#include "types.h"

namespace dvm {

inline constexpr int kMaxRank = 10;

// A shape or a set of strides: rank and that many numbers, in place.
struct Dims {
  int rank = 0;
  std::array<int64_t, kMaxRank> d{};
  int64_t operator[](int i) const { return d[i]; }
  int64_t& operator[](int i) { return d[i]; }
  int64_t size() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= d[i];
    return n;
  }
  bool operator==(const Dims& o) const {
    if (rank != o.rank) return false;
    for (int i = 0; i < rank; ++i)
      if (d[i] != o.d[i]) return false;
    return true;
  }
};
Dims contiguous_strides(const Dims& shape);  // in elements
bool is_contiguous(const Dims& shape, const Dims& strides);

// A user error (shape, dtype, bounds): becomes dvm.Error with the place of the instruction.
struct UserError : std::runtime_error {
  uint32_t place;
  UserError(const std::string& what, uint32_t place_ = 0) : std::runtime_error(what), place(place_) {}
};

// An immediate of an instruction, kept in both forms so that int64 values survive.
struct Imm {
  double f = 0;
  int64_t i = 0;
  bool is_int = false;
};

struct Instr {
  Op op = Op::kEnd;
  DType dtype = DType::kNone;        // of the result
  uint32_t place = 0;
  std::vector<int32_t> operands;     // local value ids; -1: imms[0] stands there
  std::vector<int64_t> attrs;
  std::vector<Imm> imms;
  Dims shape;                        // of the result, for this launch
  std::string name;                  // the user's name for the result, if known
};

// Sets instr.shape and instr.dtype from its operands' shapes and dtypes (shape must be preset where ops.def says "own"); throws UserError.
struct OperandType {
  DType dtype;
  const Dims* shape;
};
void infer(Instr& instr, const std::vector<OperandType>& operands);

struct FunctionTimes;                // spent.h
struct Storage;                      // pooled, counted memory (memory.h)
class Panels;                        // kept with a constant (panels.h)

// A value in memory: any strides (elements), `owner` keeps the bytes alive (null: the caller's memory).
struct Value {
  void* data = nullptr;              // null: not in memory
  DType dtype = DType::kNone;
  Dims shape, strides;
  std::shared_ptr<Storage> owner;
  Panels* panels = nullptr;          // it is a constant: nobody writes these bytes (owned by the constant's Storage)
};

// Local ids: inputs 0..inputs.size()-1, then instruction i is value inputs.size()+i.
struct ProgramCode {
  std::string name;
  struct Input {
    DType dtype;
    Dims shape, strides;
    std::string cls;
  };
  std::vector<Input> inputs;
  std::vector<Instr> instrs;
  int value_of(int instr) const { return static_cast<int>(inputs.size()) + instr; }
  int instr_of(int value) const { return value - static_cast<int>(inputs.size()); }
};

// ---- the compiler (fuse.cc, tile.cc, encode.cc) and the interpreter (interp.cc) ---------------------------------------------------

struct HookSite {
  int instr;
  int kind;
  int64_t slot;
};  // kind: kHookStats or kHookCheck; slot: index into RunIO::stats / RunIO::checks
inline constexpr int kHookStop = 1, kHookStats = 2, kHookCapture = 4, kHookCheck = 8;

struct AreaInfo {
  std::string kind;                  // "vector", "cube", "move", "reduce"
  std::vector<int> instrs;           // ascending
  std::string cut_reason;
  int64_t tiles = 0, tile_rows = 0, tile_cols = 0;
  int64_t ns = 0;                    // written by run()
  int stack_first = 0, stack_end = 0;  // areas that run side by side, this one among them
};

// A value the segment stores itself between areas ("workspace"): where it lives in the segment's workspace, and when.
struct SlotInfo {
  int value;
  int64_t offset, bytes;
  int first_area, last_area;
  int in_place_of;
};

struct Segment;                      // compiled code of instructions [begin, end): areas, tile code in read-only pages, slot plan

struct SegmentView {                 // what the debugger shows of it
  std::vector<AreaInfo> areas;
  std::vector<SlotInfo> slots;
  std::vector<SlotInfo> scratch;     // of single areas: no value
  std::vector<std::pair<int32_t, int32_t>> over_inputs;  // kept result, input it may be written over if both are the same bytes
  int64_t workspace_bytes = 0;
  std::vector<int> folded_into;      // per instruction of the program: index merged into, or -1
  int64_t fuse_ns = 0, tile_ns = 0, encode_ns = 0;  // what compiling it took
  int joined = -1;                   // number in CompileOptions::near of the segment whose tile code it runs; -1: it has its own
};

struct Profile;                      // a device (profile.h)
class PassLog;

struct CompileOptions {
  bool unfused = false;              // every instruction an area of its own (stepping)
  int64_t tile_elements = 0;         // 0: automatic
  const Profile* profile = nullptr;  // null: the cpu's
  PassLog* log = nullptr;            // is told what each pass made
  std::vector<std::shared_ptr<Segment>> near = {};  // of near shapes: their tile code is taken where it is the same
};

// keep: per local value, non-zero if it must be in memory after the segment (contiguous). Immediates are read at run time through
// RunIO::code, so that another launch with other immediates needs no compile. Throws UserError.
std::shared_ptr<Segment> compile(const ProgramCode& code, int begin, int end, const std::vector<uint8_t>& keep, const std::vector<HookSite>& hooks,
                                 const CompileOptions& options);
const SegmentView& view(const Segment&);
int64_t segment_bytes(const Segment&);  // what it holds, without what it shares with a near shape
std::string tile_text(const Segment&, int area);
std::vector<uint64_t> tile_words(const Segment&, int area);

struct RunIO {
  const ProgramCode* code;           // this launch's immediates
  std::vector<Value>* values;        // by local id. In: inputs, values of earlier segments, and for each kept value the memory to write
                               // (contiguous; the caller allocated it). View results (RESHAPE, TRANSPOSE, ...) that are not kept
                               // may be filled in as views of their source.
  void* workspace = nullptr;  // view(segment).workspace_bytes bytes, 128-byte aligned, allocated by the launch
  std::vector<Stats>* stats;  // by HookSite::slot
  FunctionTimes* times = nullptr;  // gets kernels, dispatch and waiting,
  int stands_for = 1;  //   for so many runs
  std::vector<int>* checks;  // by HookSite::slot: or of check bits
};
// Values that are views of others, from where those are.
void fill_views(const Segment& segment, std::vector<Value>* values);
// Runs the segment on the calling thread and the worker pool. Throws UserError for an index out of range (naming it).
void run(Segment& segment, RunIO& io);
// Whether it is a few microseconds of work on the calling thread; and such a run without a look at the clock.
bool is_short(const Segment& segment);
void run_unmeasured(const Segment& segment, RunIO& io);

}  // namespace dvm
