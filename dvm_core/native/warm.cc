#include "warm.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "fork.h"
#include "infer.h"
#include "nodes.h"
#include "optable.h"
#include "stream.h"

namespace dvm {
namespace {

constexpr size_t kOfOneProgram = 64;

struct Known {
  std::mutex mutex;
  std::unordered_map<uint64_t, std::vector<KnownShapes>> by_structure;
};
Known& known() {
  static Known* k = new Known;
  return *k;
}

// Never destroyed, and a new one in a forked child, as the copy stream.
Stream*& warm_stream() {
  static Stream* stream = [] {
    in_child_after_fork([] { warm_stream() = new Stream; });
    return new Stream;
  }();
  return stream;
}

// The words of a geometry, taken in the order in which recording wrote them.
class Words {
 public:
  explicit Words(const std::vector<int64_t>& words) : words_(words) {}
  int64_t next() {
    if (at_ == words_.size()) throw UserError("the shapes are another program's");
    return words_[at_++];
  }
  Dims shape(int rank) {
    Dims d;
    d.rank = rank;
    for (int i = 0; i < rank; ++i)
      if (d[i] = next(); d[i] < 0) throw UserError("shape " + std::to_string(d[i]) + " is negative");
    return d;
  }
  Dims strides(int rank) {
    Dims d;
    d.rank = rank;
    for (int i = 0; i < rank; ++i) d[i] = next();
    return d;
  }
  bool done() const { return at_ == words_.size(); }

 private:
  const std::vector<int64_t>& words_;
  size_t at_ = 0;
};

// Below kMaxBytes offsets are added and multiplied without overflow.
void check_reach(const ProgramCode::Input& in) {
  int64_t reach = item_size(in.dtype);
  for (int i = 0; i < in.shape.rank; ++i) {
    if (in.shape[i] <= 1) continue;
    const int64_t most = kMaxBytes / in.shape[i];
    if (reach > most || in.strides[i] > most || in.strides[i] < -most) throw UserError(type_text(in.dtype, in.shape) + " is too large");
    reach *= in.shape[i];
  }
}

void make_segments(const ProgramPtr& program, const std::vector<KnownShapes>& shapes) {
  for (const KnownShapes& s : shapes) {
    try {
      const WhileRunning no_fork;
      const auto code = program->code();
      if (s.keep.size() != code->inputs.size() + code->instrs.size()) continue;
      SegmentRequest request;
      request.end = static_cast<int>(code->instrs.size());
      request.keep = s.keep;
      program->warm(with_geometry(*code, s.geometry), s.geometry, request);
    } catch (const std::exception&) {}  // of a file that is not ours, or no memory: the launch will say what is wrong, if there is one
  }
}

}  // namespace

uint64_t structure_of(const ProgramCode& code) {
  uint64_t h = 0xcbf29ce484222325ull;
  const auto take = [&](uint64_t word) {
    h = (h ^ word) * 0xff51afd7ed558ccdull;
    h ^= h >> 32;
  };
  for (const char c : code.name) take(static_cast<uint64_t>(c));
  take(code.inputs.size());
  for (const auto& in : code.inputs) take(static_cast<uint64_t>(in.dtype) | static_cast<uint64_t>(in.shape.rank) << 8);
  for (const Instr& in : code.instrs) {
    take(static_cast<uint64_t>(in.op) | static_cast<uint64_t>(in.dtype) << 8 | static_cast<uint64_t>(in.shape.rank) << 16 | in.imms.size() << 24);
    for (const int32_t o : in.operands) take(static_cast<uint64_t>(o));
    take(in.attrs.size());
    if (!geometric(in.op))
      for (const int64_t a : in.attrs) take(static_cast<uint64_t>(a));
  }
  return h;
}

ProgramCode with_geometry(const ProgramCode& code, const std::vector<int64_t>& geometry) {
  ProgramCode made = code;
  Words words(geometry);
  size_t fresh = 0;  // inputs lie in the order of their first use
  std::vector<OperandType> types;
  for (Instr& in : made.instrs) {
    types.clear();
    for (const int32_t o : in.operands) {
      if (o >= 0 && static_cast<size_t>(o) == fresh && fresh < made.inputs.size()) {
        ProgramCode::Input& input = made.inputs[fresh++];
        input.shape = words.shape(input.shape.rank);
        input.strides = words.strides(input.strides.rank);
        check_reach(input);
      }
      const auto at = static_cast<size_t>(o);
      if (o < 0) types.push_back({DType::kNone, nullptr});
      else if (at < made.inputs.size()) types.push_back({made.inputs[at].dtype, &made.inputs[at].shape});
      else types.push_back({made.instrs[at - made.inputs.size()].dtype, &made.instrs[at - made.inputs.size()].shape});
    }
    if (geometric(in.op))
      for (int64_t& a : in.attrs) a = words.next();
    if (op_info(in.op).own_shape) in.shape = words.shape(in.shape.rank);
    const int rank = in.shape.rank;
    const DType dtype = in.dtype;
    infer(in, types);
    if (in.shape.rank != rank || in.dtype != dtype) throw UserError("the shapes are another program's");
  }
  if (!words.done()) throw UserError("the shapes are another program's");
  return made;
}

void know_shapes(std::vector<KnownShapes> shapes) {
  Known& k = known();
  std::lock_guard lock(k.mutex);
  for (KnownShapes& s : shapes)
    if (auto& of = k.by_structure[s.structure]; of.size() < kOfOneProgram) of.push_back(std::move(s));
}

void warm(const ProgramPtr& program) {
  std::vector<KnownShapes> shapes;
  {
    Known& k = known();
    std::lock_guard lock(k.mutex);
    if (k.by_structure.empty()) return;
    const auto found = k.by_structure.find(structure_of(*program->code()));
    if (found == k.by_structure.end()) return;
    shapes = found->second;
  }
  warm_stream()->submit([program, shapes = std::move(shapes)] { make_segments(program, shapes); });
}

std::vector<KnownShapes> shapes_used(size_t most) {
  std::vector<KnownShapes> all;
  for (const ProgramPtr& p : all_programs()) {
    std::vector<Program::Used> used = p->used();
    std::stable_sort(used.begin(), used.end(), [](const auto& a, const auto& b) { return a.uses > b.uses; });
    if (used.size() > kOfOneProgram) used.resize(kOfOneProgram);
    const uint64_t structure = used.empty() ? 0 : structure_of(*p->code());
    for (auto& u : used) all.push_back({p->name, structure, std::move(u.geometry), std::move(u.keep), u.uses});
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.uses > b.uses; });
  if (all.size() > most) all.resize(most);
  return all;
}

void synchronize_warming() { warm_stream()->synchronize(); }

}  // namespace dvm
