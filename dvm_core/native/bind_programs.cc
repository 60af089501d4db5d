// Program, Instruction, Area and Launch as Python sees them: copies of what was true when they were asked for.
#include "bind_common.h"
#include "replay.h"
#include "rerun.h"

namespace dvm {

using namespace nb::literals;

namespace {

struct InstructionInfo {
  Instr instr;
  int index = 0, folded_into = -1, area = -1;
};

struct AreaView {
  AreaInfo info;
  int index = 0, number = 0;  // of the program, of its segment
};

std::vector<AreaView> areas_of(const std::vector<SegmentPtr>& segments) {
  std::vector<AreaView> areas;
  for (const SegmentPtr& s : segments)
    for (int number = 0; const AreaInfo& info : view(*s->segment).areas) areas.push_back({info, static_cast<int>(areas.size()), number++});
  return areas;
}

std::vector<AreaView> planned_areas(Graph& g, const std::vector<int64_t>& keep) {
  std::vector<AreaView> areas;
  if (const auto segment = g.compiled(keep))
    for (const AreaInfo& info : view(*segment).areas) areas.push_back({info, static_cast<int>(areas.size()), static_cast<int>(areas.size())});
  return areas;
}

std::vector<InstructionInfo> instructions_of(Program& p) {
  const auto code = p.code();
  std::vector<InstructionInfo> all(code->instrs.size());
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].instr = code->instrs[i];
    all[i].index = static_cast<int>(i);
  }
  const SegmentView& fused = view(*p.unhooked()->segment);
  for (size_t i = 0; i < all.size() && i < fused.folded_into.size(); ++i) all[i].folded_into = fused.folded_into[i];
  for (size_t a = 0; a < fused.areas.size(); ++a)
    for (const int i : fused.areas[a].instrs) all[static_cast<size_t>(i)].area = static_cast<int>(a);
  return all;
}

nb::tuple places_of(Program& p) {
  const auto code = p.code();
  std::vector<uint32_t> places(code->instrs.size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = code->instrs[i].place;
  return from_ints(places);
}

// Of each segment of the last launch (of the unhooked fusing, before the first), its areas numbered through.
nb::list memory_of(Program& p) {
  std::vector<SegmentPtr> segments = p.last().segments;
  if (segments.empty()) segments.push_back(p.unhooked());
  nb::list out;
  int first_area = 0;
  for (const SegmentPtr& s : segments) {
    const SegmentView& seen = view(*s->segment);
    nb::list slots;
    for (const auto* part : {&seen.slots, &seen.scratch})
      for (const SlotInfo& slot : *part)
        slots.append(nb::make_tuple(slot.value, slot.offset, slot.bytes, slot.first_area + first_area, slot.last_area + first_area, slot.in_place_of));
    out.append(nb::make_tuple(first_area, seen.areas.size(), seen.workspace_bytes, slots));
    first_area += static_cast<int>(seen.areas.size());
  }
  return out;
}

nb::list input_shapes(Program& p) {
  nb::list shapes;
  for (const auto& in : p.code()->inputs) shapes.append(nb::make_tuple(from_dims(in.shape), static_cast<int>(in.dtype)));
  return shapes;
}

nb::list input_classes(Program& p) {
  nb::list classes;
  for (const auto& in : p.code()->inputs) classes.append(in.cls);
  return classes;
}

std::vector<int64_t> kept_of(Program& p) {
  const auto inputs = p.code()->inputs.size();
  const auto kept = p.last().kept;
  std::vector<int64_t> ids;
  for (size_t v = 0; v < kept.size(); ++v)
    if (v < inputs || kept[v]) ids.push_back(static_cast<int64_t>(v));
  return ids;
}

nb::bytes words_of(Program& p, int64_t area) {
  const auto [segment, number] = find_area(p, area);
  const std::vector<uint64_t> words = tile_words(*segment->segment, number);
  return nb::bytes(reinterpret_cast<const char*>(words.data()), words.size() * sizeof(uint64_t));
}

// Rows of float64: instruction, then the figures of `kMeasured` in that order.
constexpr const char* kMeasured[] = {"instruction", "count", "zero", "nan", "pos_inf", "neg_inf", "min", "max", "mean", "std", "abs_mean"};

std::vector<Measured> measured_of(Launch& l) {
  nb::gil_scoped_release unlocked;  // a run_until on another thread may hold the launch
  return l.measured();
}

nb::bytes launch_measured(Launch& l) {
  std::vector<double> rows;
  for (const Measured& m : measured_of(l)) {
    const Stats& s = m.stats;
    const double none = std::nan("");
    const auto of_finite = [&](double value) { return s.finite ? value : none; };
    for (const int64_t n : {int64_t{m.instruction}, s.count, s.zero, s.nan, s.pos_inf, s.neg_inf}) rows.push_back(static_cast<double>(n));
    for (const double x : {s.min, s.max, s.mean, s.deviation(), s.abs_mean}) rows.push_back(of_finite(x));
  }
  return nb::bytes(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(double));
}

nb::object launch_array(Launch& l, nb::handle number) {
  const int64_t wide = to_int(number, "array");
  if (wide != static_cast<int>(wide)) throw UserError("array: no value " + std::to_string(wide) + " in a launch");
  const int local_id = static_cast<int>(wide);
  Value value;
  LeasePtr lease;
  {
    nb::gil_scoped_release unlocked;  // a run_until on another thread may hold the launch
    value = l.value(local_id, &lease);
  }
  return to_array(value, lease);
}

bool launch_constant(Launch& l, int local_id) {
  nb::gil_scoped_release unlocked;  // a run_until on another thread may hold the launch
  const Value value = l.value(local_id, nullptr);
  return value.owner && value.owner->panels;
}

void bind_views(nb::module_& m) {
  nb::class_<InstructionInfo>(m, "Instruction", "One tensor instruction, with the shapes and immediates of the last launch.")
      .def_ro("index", &InstructionInfo::index)
      .def_prop_ro("opcode", [](const InstructionInfo& i) { return static_cast<int>(i.instr.op); })
      .def_prop_ro("name", [](const InstructionInfo& i) { return op_name(i.instr.op); })
      .def_prop_ro(
          "operands", [](const InstructionInfo& i) { return from_ints(i.instr.operands); }, "Local ids, -1 = immediate.")
      .def_prop_ro("attrs", [](const InstructionInfo& i) { return from_ints(i.instr.attrs); })
      .def_prop_ro("imms",
                   [](const InstructionInfo& i) {
                     nb::list imms;
                     for (const Imm& imm : i.instr.imms) imms.append(from_imm(imm));
                     return nb::tuple(imms);
                   })
      .def_prop_ro("shape", [](const InstructionInfo& i) { return from_dims(i.instr.shape); })
      .def_prop_ro("dtype", [](const InstructionInfo& i) { return static_cast<int>(i.instr.dtype); })
      .def_prop_ro("place", [](const InstructionInfo& i) { return i.instr.place; })
      .def_prop_ro("value_name", [](const InstructionInfo& i) { return i.instr.name; })
      .def_ro("folded_into", &InstructionInfo::folded_into, "Index of the instruction it was merged into, -1.")
      .def_ro("area", &InstructionInfo::area, "Its area in the unhooked fusing, -1 for a view that is no work.")
      .def("__repr__", [](const InstructionInfo& i) {
        std::string text = "<" + std::to_string(i.index) + ": " + op_name(i.instr.op);
        for (const int32_t o : i.instr.operands) text += o < 0 ? " imm" : " %" + std::to_string(o);
        return text + " -> " + type_text(i.instr.dtype, i.instr.shape) + ">";
      });
  nb::class_<AreaView>(m, "Area", "Instructions fused into one tile program.")
      .def_ro("index", &AreaView::index)
      .def_prop_ro(
          "kind", [](const AreaView& a) { return a.info.kind; }, "vector, cube (matmul with what follows), move or reduce.")
      .def_prop_ro("instructions", [](const AreaView& a) { return from_ints(a.info.instrs); })
      .def_prop_ro(
          "cut_reason", [](const AreaView& a) { return a.info.cut_reason; }, "Why the area could not grow further, in words.")
      .def_prop_ro(
          "stack",
          [](const AreaView& a) {
            const int shift = a.index - a.number;
            nb::list beside;
            for (int k = a.info.stack_first; k < a.info.stack_end; ++k) beside.append(k + shift);
            return nb::tuple(beside);
          },
          "Areas that run side by side with it as one piece of work, itself among them; alone: areas run one after the other.")
      .def_prop_ro("tiles", [](const AreaView& a) { return a.info.tiles; })
      .def_prop_ro("tile_rows", [](const AreaView& a) { return a.info.tile_rows; })
      .def_prop_ro("tile_cols", [](const AreaView& a) { return a.info.tile_cols; })
      .def_prop_ro("ns", [](const AreaView& a) { return a.info.ns; }, "Nanoseconds of the last launch.");
}

}  // namespace

nb::list instructions_between(const ProgramCode& code, int begin, int end) {
  nb::list out;
  for (int i = begin; i < end; ++i) {
    InstructionInfo info;
    info.instr = code.instrs[static_cast<size_t>(i)];
    info.index = i;
    out.append(nb::cast(std::move(info)));
  }
  return out;
}

// The segment that holds an area of the last launch (of the unhooked fusing, before the first launch) and its number there.
std::pair<SegmentPtr, int> find_area(Program& p, int64_t area) {
  std::vector<SegmentPtr> segments = p.last().segments;
  if (segments.empty()) segments.push_back(p.unhooked());
  int64_t left = area;
  for (const SegmentPtr& s : segments) {
    const auto n = static_cast<int64_t>(view(*s->segment).areas.size());
    if (left >= 0 && left < n) return {s, static_cast<int>(left)};
    left -= n;
  }
  throw UserError("no area " + std::to_string(area) + " in program " + std::to_string(p.id));
}

void bind_programs(nb::module_& m) {
  bind_views(m);
  nb::class_<Program>(m, "Program", "The instructions of one flush, cached by structure; shapes, strides and immediates are patched in at every launch.")
      .def_ro("id", &Program::id)
      .def_ro("name", &Program::name)
      .def_ro("backward", &Program::backward, "Any instruction is marked backward.")
      .def_prop_ro("launches",
                   [](Program& p) {
                     Replay::tell();
                     return p.launches.load();
                   })
      .def(
          "forget_segments", [](Program& p) { p.forget_segments(~uint64_t{0}); },
          "Lets go of the code that the selector has of it; a launch that runs keeps its own, a later one compiles anew.")
      .def_prop_ro(
          "segments", [](Program& p) { return p.segment_count(); }, "For how many shapes, kept values, hooks and devices the selector has code of it ready.")
      .def_prop_ro("input_count", [](Program& p) { return p.code()->inputs.size(); })
      .def_prop_ro("instructions", &instructions_of, "With the shapes and immediates of the last launch.")
      .def_prop_ro("places", &places_of, "Of each instruction where it comes from, 0 for nowhere: see `place_info`.")
      .def_prop_ro("input_shapes", &input_shapes, "(shape, dtype) of each input at the last launch.")
      .def_prop_ro("input_classes", &input_classes, "What each input is: \"parameter\", or \"\" where nothing is known.")
      .def_prop_ro(
          "areas", [](Program& p) { return areas_of(p.last().segments); }, "How the last launch was fused, hooks included.")
      .def(
          "fused_areas", [](Program& p) { return areas_of({p.unhooked()}); }, "How it is fused with no hooks at the last shapes.")
      .def(
          "tile_text",
          [](Program& p, int64_t area) {
            const auto [segment, number] = find_area(p, area);
            return tile_text(*segment->segment, number);
          },
          "area"_a, "Disassembly of an area's tile code, one instruction a line, each ending in `; %<instruction index>`.")
      .def(
          "fused_tile_text", [](Program& p, int area) { return tile_text(*p.unhooked()->segment, area); }, "area"_a, "The same of an area of `fused_areas`.")
      .def(
          "passes",
          [](Program& p) {
            nb::list out;
            for (const auto& [name, text] : p.passes()) out.append(nb::make_tuple(name, text));
            return out;
          },
          "(pass, what it made as text) in order, with no hooks at the last shapes; compiles anew.")
      .def(
          "compile_ns",
          [](Program& p) {
            const int64_t start = now_ns();
            p.compiled_for(profile_at(0));
            return now_ns() - start;
          },
          "What compiling it anew for the cpu takes, with no hooks at the last shapes. Nothing runs, nothing is kept.")
      .def(
          "extents_seen",
          [](Program& p) {
            nb::list out;
            for (const auto& [least, most] : p.extents_seen()) out.append(nb::make_tuple(least, most));
            return out;
          },
          "(smallest, largest) extent of every dimension of the inputs over all launches, input after input.")
      .def("tile_words", &words_of, "area"_a, "The area's tile code, 64-bit words in this machine's byte order.")
      .def("memory", &memory_of,
           "Per segment of the last launch: (first area, areas, workspace bytes, slots). A slot: (local id or -1 for scratch memory, offset, bytes, first "
           "and last area, id whose bytes it took over or -1).")
      .def("kept", &kept_of, "Local ids in memory after the last launch.");

  nb::list figures;
  for (const char* name : kMeasured) figures.append(name);
  m.attr("MEASURED") = nb::tuple(figures);
  nb::class_<Launch>(m, "Launch", "One run of a program; kept by its owner while its values are wanted.")
      .def_ro("program", &Launch::program)
      .def_ro("number", &Launch::number, "Counts from 1 over the process.")
      .def_ro("step", &Launch::step)
      .def_prop_ro("next", &Launch::next, "Index of the next instruction to run.")
      .def_prop_ro("done", [](const Launch& l) { return l.next() == l.count(); })
      .def("measured", &launch_measured, "Statistics taken so far: rows of float64, a column for each name of MEASURED.")
      .def("array", &launch_array, "local_id"_a, "A read-only view of a value in memory, None if not computed yet or fused away.")
      .def("constant", &launch_constant, "local_id"_a, "Whether a value lies in the memory of a dvm.constant, of which products keep panels.")
      .def("run_until", &Launch::run_until, "instruction"_a, nb::call_guard<nb::gil_scoped_release>(),
           "For a stopped launch: runs up to, not including, that instruction, each an area of its own. Error if it is not stopped.")
      .def(
          "rerun",
          [](Launch& l, const std::string& device, bool unfused, bool all) {
            const Profile& profile = device.empty() ? current_profile() : find_profile(device);
            nb::gil_scoped_release unlocked;
            return std::make_shared<Rerun>(l, profile, unfused, all);
          },
          "device"_a = "", "unfused"_a = false, "all"_a = true,
          "Its instructions once more on the inputs it had, on that device (\"\": the one in use); unfused: each an area of its own; all: every "
          "result is kept, else those it was asked for. Nothing of the launch changes. Error if an input is gone.")
      .def(
          "tile_replay",
          [](Launch& l, int area) {
            nb::gil_scoped_release unlocked;
            return std::make_shared<TileReplay>(l, area);
          },
          "area"_a, "An area of its fused code again, to be gone through by tile instructions. Error if it has none, or an input is gone.");
  nb::class_<Rerun>(m, "Rerun", "A launch that was run again for comparison.")
      .def("array", [](Rerun& r, int local_id) { return to_array(r.value(local_id), nullptr); }, "local_id"_a, "As of a launch.");
  nb::class_<TileReplay>(m, "TileReplay", "One area of a launch run again, tile instruction by tile instruction, tile after tile on one core.")
      .def_prop_ro("area", &TileReplay::area)
      .def_prop_ro("tile", &TileReplay::tile, "Number of the tile, in the order one core takes them.")
      .def_prop_ro("tiles", &TileReplay::tiles)
      .def_prop_ro("line", &TileReplay::line, "The next instruction's number in the area's listing.")
      .def_prop_ro("instruction", &TileReplay::instr, "The tensor instruction it belongs to, -1 at the area's end.")
      .def_prop_ro("done", &TileReplay::done)
      .def_prop_ro(
          "place", [](const TileReplay& r) { return nb::make_tuple(r.core().row, r.core().rows, r.core().col, r.core().cols); },
          "First row and rows, first column and columns of the tile in the area's space.")
      .def("step", &TileReplay::step, nb::call_guard<nb::gil_scoped_release>(), "Runs one instruction; a strip is one.")
      .def(
          "made",
          [](const TileReplay& r) {
            nb::list all;
            for (const TileReplay::Made& made : r.made())
              all.append(nb::make_tuple(made.line, made.instr, to_array(made.value, nullptr), static_cast<int>(made.value.dtype), made.local));
            return all;
          },
          "(line, instruction, copy, dtype, whether it is in local memory) of what this tile's instructions made that is still there; line -1: before "
          "the tiles.");

  m.def("planned_areas", &planned_areas, "graph"_a, "keep"_a, "How a graph's pending instructions would be fused on the cpu; nothing runs.");
  m.def("programs", &all_programs, "All cached programs, by id.");
  m.def("program", &program_by_id, "id"_a, "The program with this id. Error if there is none.");
}

}  // namespace dvm
