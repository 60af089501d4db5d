// What concerns the whole process: memory, counters, settings.
#include "bind_common.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "infer.h"
#include "panels.h"
#include "pool.h"
#include "replay.h"
#include "warm.h"

namespace dvm {

using namespace nb::literals;

namespace {

// Called with the file of each module's code, before it runs. It stays until the process ends: hooks cannot be taken back.
PyObject* on_module = nullptr;

int audit(const char* event, PyObject* arguments, void*) {
  if (!on_module || std::strcmp(event, "exec") != 0 || !PyTuple_Check(arguments) || PyTuple_GET_SIZE(arguments) != 1) return 0;
  PyObject* code = PyTuple_GET_ITEM(arguments, 0);
  if (!PyCode_Check(code)) return 0;
  const auto* c = reinterpret_cast<PyCodeObject*>(code);
  if (!PyUnicode_Check(c->co_name) || PyUnicode_CompareWithASCIIString(c->co_name, "<module>") != 0) return 0;
  PyObject *type, *value, *trace;  // the program's own
  PyErr_Fetch(&type, &value, &trace);
  if (PyObject* done = PyObject_CallOneArg(on_module, c->co_filename)) Py_DECREF(done);
  PyErr_Restore(type, value, trace);  // what the call may have raised is nobody's
  return 0;
}

// Tells of the code of modules from now on. callback(file) may not raise: nobody hears it. None: no more.
void tell_modules(nb::object callback) {
  static const bool added = PySys_AddAuditHook(&audit, nullptr) == 0;
  if (!added) throw std::runtime_error("the interpreter takes no audit hook");
  PyObject* before = std::exchange(on_module, callback.is_none() ? nullptr : callback.release().ptr());
  Py_XDECREF(before);
}

nb::object empty(nb::handle shape, int dtype) {
  Value v;
  v.dtype = to_dtype(dtype, "empty");
  v.shape = to_dims(shape, "empty");
  if (v.dtype == DType::kNone) throw UserError("empty: no dtype 0");
  int64_t bytes = item_size(v.dtype);
  for (int i = 0; i < v.shape.rank; ++i) {
    const int64_t n = v.shape[i];
    if (n < 0) throw UserError("empty: shape " + shape_text(v.shape) + " has a negative extent");
    if (n > 1 && bytes > kMaxBytes / n) throw UserError("empty: " + type_text(v.dtype, v.shape) + " is too large");
    if (n > 1) bytes *= n;
  }
  v.strides = contiguous_strides(v.shape);
  v.owner = allocate_unlogged(v.shape.size() ? static_cast<size_t>(bytes) : 0);
  v.data = v.owner->data;
  return to_array(v, nullptr, true);
}

// Microseconds by phase, of all functions and of each.
void add_times(nb::dict& d) {
  const auto by_phase = [](const int64_t* ns) {
    nb::dict us;
    for (int p = 0; p < kPhases; ++p) us[kPhaseNames[p]] = static_cast<double>(ns[p]) * 1e-3;
    return us;
  };
  int64_t all[kPhases] = {};
  nb::dict functions;
  for (const FunctionTimesPtr& f : all_times()) {
    int64_t ns[kPhases];
    for (int p = 0; p < kPhases; ++p) all[p] += ns[p] = f->ns[p].load(std::memory_order_relaxed);
    nb::dict entry;
    entry["launches"] = f->launches.load();
    entry["instructions"] = f->instructions.load();
    entry["selector_hits"] = f->hits.load();
    entry["selector_misses"] = f->misses.load();
    entry["shapes"] = f->shapes();
    entry["shape_changes"] = f->changes();
    entry["time_us"] = by_phase(ns);
    functions[f->name.c_str()] = entry;
  }
  d["time_us"] = by_phase(all);
  d["functions"] = functions;
}

nb::dict stats() {
  Replay::tell();
  using S = SelectorStats;
  using T = SelectorStats::Times;
  using M = MemoryStats;
  using C = CopyStats;
  const S selector = selector_stats();
  nb::dict d =
      told(selector, "programs", &S::programs, "selector_hits", &S::hits, "selector_misses", &S::misses, "selector_clusters", &S::joins, "selector_warmed",
           &S::warmed, "selector_evictions", &S::evictions, "selector_segments", &S::segments, "selector_bytes", &S::bytes, "patches", &S::patches);
  d["compile_us"] = told(selector.compiles, "p50", &T::p50, "p99", &T::p99, "max", &T::max);
  d["cluster_us"] = told(selector.joined, "p50", &T::p50, "p99", &T::p99, "max", &T::max);
  tell(d, memory_stats(), "bytes_live", &M::live, "bytes_peak", &M::peak, "bytes_cached", &M::cached, "reuses", &M::reuses);
  tell(d, copy_stats(), "bytes_copied", &C::bytes_copied, "copies", &C::copies, "copies_avoided", &C::copies_avoided);
  d["launches"] = launch_count();
  d["captures"] = capture_stats();
  d["panels"] = told(panel_stats(), "built", &PanelStats::built, "used", &PanelStats::used, "bytes", &PanelStats::bytes);
  d["instructions"] = instructions_run();
  d["threads"] = pool_threads();
  d["simd"] = kernels().level;
  add_times(d);
  return d;
}

nb::list memory_event_list(int64_t since) {
  nb::list out;
  for (const BufferEvent& e : memory_events(since)) {
    using E = BufferEvent;
    using T = BufferTag;
    nb::dict d = told(e, "id", &E::id, "bytes", &E::bytes, "address", &E::address, "reuse", &E::reuse, "step", &E::step, "born", &E::born, "freed", &E::freed,
                      "born_ns", &E::born_ns, "freed_ns", &E::freed_ns);
    tell(d, e.tag, "name", &T::name, "cls", &T::cls, "place", &T::place, "program", &T::program, "instruction", &T::instruction, "in_place_of",
         &T::in_place_of);
    out.append(d);
  }
  return out;
}

nb::list shapes_used_list(size_t most) {
  Replay::tell();
  nb::list out;
  for (const KnownShapes& s : shapes_used(most)) {
    std::vector<int64_t> kept;
    for (size_t v = 0; v < s.keep.size(); ++v)
      if (s.keep[v]) kept.push_back(static_cast<int64_t>(v));
    out.append(nb::make_tuple(s.name, s.structure, from_ints(s.geometry), from_ints(kept), s.keep.size(), s.uses));
  }
  return out;
}

// (structure, geometry, kept ids, number of ids) each.
void know_shape_list(nb::handle list) {
  constexpr const char* kWhat = "know_shapes";
  std::vector<KnownShapes> all;
  const Items items(list, kWhat);
  for (size_t i = 0; i < items.size(); ++i) {
    const Items entry(items[i], kWhat);
    if (entry.size() != 4) throw UserError("know_shapes: an entry is (structure, geometry, kept ids, number of ids)");
    KnownShapes s;
    if (!nb::try_cast<uint64_t>(entry[0], s.structure)) throw UserError("know_shapes: a structure is a number of 64 bits");
    const Items geometry(entry[1], kWhat), kept(entry[2], kWhat);
    for (size_t k = 0; k < geometry.size(); ++k) s.geometry.push_back(to_int(geometry[k], kWhat));
    const int64_t values = to_int(entry[3], kWhat);
    if (values < 0 || values > (1 << 24)) throw UserError("know_shapes: " + std::to_string(values) + " values");
    s.keep.assign(static_cast<size_t>(values), 0);
    for (size_t k = 0; k < kept.size(); ++k) {
      const int64_t id = to_int(kept[k], kWhat);
      if (id < 0 || id >= values) throw UserError("know_shapes: no value " + std::to_string(id));
      s.keep[static_cast<size_t>(id)] = 1;
    }
    all.push_back(std::move(s));
  }
  know_shapes(std::move(all));
}

}  // namespace

void bind_process(nb::module_& m) {
  m.def("empty", &empty, "shape"_a, "dtype"_a, "A NumPy array on pooled, 128-byte aligned memory (bfloat16 as uint16), contents undefined.");
  m.def("stats", &stats, "Counters of the process, the dictionary of dvm.stats().");
  m.def("memory_log", &memory_log, "enable"_a, "Starts or stops the log of buffers; off, it costs nothing.");
  m.def(
      "log_class", [](uintptr_t address, const std::string& cls) { log_class(reinterpret_cast<const void*>(address), cls); }, "address"_a, "cls"_a,
      "What the framework's buffer there is, to the log.");
  m.def(
      "log_replaced",
      [](uintptr_t address, uintptr_t by, const std::string& cls) {
        log_replaced(reinterpret_cast<const void*>(address), reinterpret_cast<const void*>(by), cls);
      },
      "address"_a, "by"_a, "cls"_a, "To the log: a tensor gets other memory, a result that will be of that class; its old buffer ends with its last user.");
  m.def("memory_events", &memory_event_list, "since"_a = 0, "Logged buffers with id >= since, oldest first (the last 65536).");
  m.def(
      "set_threads", [](nb::handle n) { set_pool_threads(static_cast<int>(std::clamp<int64_t>(to_int(n, "set_threads"), 0, INT32_MAX))); }, "n"_a,
      "Worker threads, the caller included; 0: one per processor.");
  m.def("tell_modules", &tell_modules, "callback"_a.none(),
        "callback(file) is called before each module's code runs, in the thread that imports it; what it raises is lost. None: no more.");
  m.def("set_step", &set_step, "step"_a, "Number of the current call of the outermost captured function.");
  m.def("simd_level", [] { return kernels().level; }, "baseline, avx2 or avx512.");
  m.def("shapes_used", &shapes_used_list, "most"_a, "(name, structure, geometry, kept ids, number of ids, launches) of this run's programs, most used first.");
  m.def("know_shapes", &know_shape_list, "shapes"_a,
        "(structure, geometry, kept ids, number of ids) of an earlier run: compiled in the background when their program is made.");
  m.def(
      "synchronize_warming",
      [] {
        nb::gil_scoped_release unlocked;
        synchronize_warming();
      },
      "Waits until the known shapes of the programs made so far are compiled.");
  m.def(
      "forget_segments",
      [] {
        for (const ProgramPtr& program : all_programs()) program->forget_segments(~uint64_t{0});
      },
      "For tests: every shape is compiled anew at its next launch, with nothing taken from a near one.");
  m.def("set_clusters", &set_clusters, "on"_a, "For tests and benchmarks: whether near shapes share tile code. Never changes a result.");
  m.def("set_tile_elements", &set_tile_elements, "n"_a, "For tests: elements per tile (0: automatic). Never changes a result.");
}

}  // namespace dvm
