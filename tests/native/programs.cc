// The same bits however a program is cut, on however many threads, with whatever tiles; and hostile instructions are refused.
#include "optable.h"
#include "pool.h"
#include "random_graph.h"

namespace dvm::test {
namespace {

using Results = std::vector<std::vector<uint8_t>>;

// Flushes after every `cut` instructions (0: once), and gives the bytes of the wanted values; empty where the program has no result because an
// index is out of range.
Results run(const RandomGraph& program, const std::vector<int64_t>& wanted, int cut, const std::string& name) {
  Graph g(name);
  add_inputs(g, program);
  try {
    for (int at = 0; at < program.count();) {
      const int until = cut ? std::min(program.count(), at + cut) : program.count();
      record(g, program, at, until);
      std::vector<int64_t> keep = wanted;
      if (cut) {
        keep.clear();
        for (int i = at; i < until; ++i) keep.push_back(static_cast<int64_t>(program.inputs.size()) + i);
      }
      Graph::Flush f = g.flush(keep, {}, nullptr, nullptr);
      if (f.launch) f.launch->run();
      g.finish(f);
      at = until;
    }
  } catch (const UserError&) { return {}; }
  Results found;
  for (const int64_t id : wanted) found.push_back(bytes_of(g, id));
  return found;
}

}  // namespace

DVM_SCENARIO(random_programs) {
  std::vector<int> drawn(kOps, 0);
  for (int seed = 1; seed <= 1500 * effort; ++seed) {
    Random r(static_cast<uint64_t>(seed) + 1000000);
    const RandomGraph program = random_graph(static_cast<uint64_t>(seed), 2 + seed % 14);
    if (!program.count()) continue;
    for (const Instr& in : program.instrs) ++drawn[static_cast<size_t>(in.op)];
    std::vector<int64_t> wanted{program.values() - 1};
    if (r.chance(0.5)) wanted.push_back(static_cast<int64_t>(program.inputs.size()) + r.below(program.count()));
    if (wanted.back() == wanted.front()) wanted.resize(1);
    const std::string name = "seed " + std::to_string(seed);
    set_pool_threads(1);
    const Results whole = run(program, wanted, 0, name);
    for (const int cut : {1, 3}) {
      const Results again = run(program, wanted, cut, name);
      // An index out of range in what is not wanted is found only where it is computed.
      CHECK(again.empty() || again == whole, name + ": cut after every " + std::to_string(cut) + " instructions" + text_of(program));
    }
    set_pool_threads(1 + static_cast<int>(r.below(3)));
    set_tile_elements(r.chance(0.5) ? 64 : 0);
    CHECK(run(program, wanted, 0, name) == whole, name + ": other tiles and threads" + text_of(program));
    set_tile_elements(0);
    set_pool_threads(0);
  }
  for (int code = 1; code < kOps; ++code) {
    const OpInfo& info = op_info(static_cast<Op>(code));
    CHECK(!info.name || drawn[static_cast<size_t>(code)], std::string(info.name ? info.name : "") + " was never drawn: draw() does not know its attributes");
  }
}

DVM_SCENARIO(hostile_instructions) {
  int accepted = 0, refused = 0;
  for (int seed = 1; seed <= 2500 * effort; ++seed) {
    Random r(static_cast<uint64_t>(seed) + 2000000);
    const RandomGraph start = random_graph(static_cast<uint64_t>(seed), 2);
    Graph g("hostile");
    add_inputs(g, start);
    record(g, start, 0, start.count());
    bool runnable = true;
    for (int k = 0; k < 60; ++k) {
      Instr& draft = g.draft();
      draft.op = static_cast<Op>(r.below(0x60));
      const OpInfo& info = op_info(draft.op);
      const int64_t arity = r.chance(0.1) ? r.below(5) : info.arity < 0 ? r.below(4) : info.arity;
      std::vector<const Dims*> shapes;
      for (int64_t o = 0; o < arity; ++o) {
        const int64_t id = r.chance(0.03) ? g.size() + r.below(3) - 1 : r.chance(0.05) ? -1 : r.below(g.size());
        draft.operands.push_back(static_cast<int32_t>(id));
        if (id >= 0 && id < g.size()) shapes.push_back(&g.node(id).instr.shape);
      }
      draw(r, draft, shapes, true);
      try {
        const int64_t id = g.record(r.chance(0.02) ? !info.own_shape : info.own_shape);
        ++accepted;
        const Instr& made = g.node(id).instr;
        CHECK(item_size(made.dtype) > 0 && made.shape.rank <= kMaxRank, "a result of no dtype or of too many axes");
        for (int a = 0; a < made.shape.rank; ++a) CHECK(made.shape[a] >= 0, "a negative extent");
        // Work that is allowed and endless is not run.
        int64_t work = made.shape.size();
        for (const int32_t o : made.operands)
          if (o >= 0) work = std::max(work, g.node(o).instr.shape.size());
        runnable = runnable && work <= 40000;
        if (!runnable) break;
      } catch (const UserError&) { ++refused; }
    }
    if (!runnable) continue;
    std::vector<int64_t> keep;
    for (int64_t id = static_cast<int64_t>(start.inputs.size()); id < g.size(); ++id)
      if (r.chance(0.5)) keep.push_back(id);
    try {
      Graph::Flush f = g.flush(keep, {}, nullptr, nullptr);
      if (f.launch) f.launch->run();
      g.finish(f);
      for (const int64_t id : keep) bytes_of(g, id);
    } catch (const UserError&) { ++refused; }
  }
  CHECK(accepted > 100 * effort && refused > 1000 * effort, "too little was drawn: " + std::to_string(accepted) + ", " + std::to_string(refused));
}

}  // namespace dvm::test
