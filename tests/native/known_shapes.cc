// Shapes of an earlier run: what a program was launched with is worked out again word for word; anything else is refused or compiles.
#include <algorithm>

#include "random_graph.h"
#include "warm.h"

namespace dvm::test {
namespace {

ProgramPtr launched(const RandomGraph& program, const std::string& name) {
  Graph g(name);
  add_inputs(g, program);
  ProgramPtr made;
  try {
    record(g, program, 0, program.count());
    Graph::Flush f = g.flush(
        {program.values() - 1}, {},
        [&](const ProgramPtr& p, bool is_new) {
          if (is_new) made = p;
          return PassedOver();
        },
        nullptr);
    if (f.launch) f.launch->run();
    g.finish(f);
  } catch (const UserError&) { return nullptr; }
  return made;
}

bool same(const ProgramCode& a, const ProgramCode& b) {
  for (size_t i = 0; i < a.inputs.size(); ++i)
    if (!(a.inputs[i].shape == b.inputs[i].shape) || !(a.inputs[i].strides == b.inputs[i].strides)) return false;
  for (size_t i = 0; i < a.instrs.size(); ++i)
    if (!(a.instrs[i].shape == b.instrs[i].shape) || a.instrs[i].attrs != b.instrs[i].attrs) return false;
  return a.inputs.size() == b.inputs.size() && a.instrs.size() == b.instrs.size();
}

int64_t odd_number(Random& r, int64_t was) {
  const std::vector<int64_t> numbers = {was + 1, was - 1, 0, 1, -1, 2 * was, 7, 1 << 20, int64_t{1} << 40, INT64_MAX, INT64_MIN, -was};
  return r.pick(numbers);
}

}  // namespace

DVM_SCENARIO(known_shapes) {
  int accepted = 0, refused = 0;
  for (int seed = 1; seed <= 300 * effort; ++seed) {
    Random r(static_cast<uint64_t>(seed) + 3000000);
    const RandomGraph program = random_graph(static_cast<uint64_t>(seed), 1 + seed % 10);
    if (!program.count()) continue;
    const ProgramPtr p = launched(program, "known " + std::to_string(seed));
    if (!p) continue;
    const std::vector<Program::Used> used = p->used();
    CHECK(used.size() == 1 && used[0].uses == 1, "one launch, one set of shapes" + text_of(program));
    CHECK(same(with_geometry(*p->code(), used[0].geometry), *p->code()), "the shapes it had are worked out again" + text_of(program));
    SegmentRequest request;
    request.end = static_cast<int>(p->code()->instrs.size());
    request.keep = used[0].keep;
    for (int k = 0; k < 20; ++k) {
      std::vector<int64_t> geometry = used[0].geometry;
      if (r.chance(0.1)) geometry.resize(static_cast<size_t>(r.below(static_cast<int64_t>(geometry.size()) + 3)));
      for (int64_t n = r.below(3); n >= 0 && !geometry.empty(); --n) {
        int64_t& word = geometry[static_cast<size_t>(r.below(static_cast<int64_t>(geometry.size())))];
        word = odd_number(r, std::clamp(word, int64_t{-1000}, int64_t{1000}));
      }
      try {
        p->warm(with_geometry(*p->code(), geometry), geometry, request);
        ++accepted;
      } catch (const UserError&) { ++refused; }
    }
  }
  CHECK(accepted > 100 && refused > 100, std::to_string(accepted) + " accepted, " + std::to_string(refused) + " refused");
}

}  // namespace dvm::test
