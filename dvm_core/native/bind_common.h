// What the binding files share: arguments checked and converted, values as NumPy arrays.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <vector>

#include "graph.h"
#include "launch.h"
#include "optable.h"

namespace dvm {

namespace nb = nanobind;

// A tuple or list, borrowed item by item. Throws a Python TypeError naming `what`.
class Items {
 public:
  Items(nb::handle sequence, const char* what);
  Items(const Items&) = delete;
  ~Items() { Py_DECREF(fast_); }
  size_t size() const { return static_cast<size_t>(PySequence_Fast_GET_SIZE(fast_)); }
  nb::handle operator[](size_t i) const { return PySequence_Fast_GET_ITEM(fast_, static_cast<Py_ssize_t>(i)); }

 private:
  PyObject* fast_;
};

int64_t to_int(nb::handle number, const char* what);          // anything with __index__, checked to fit
Dims to_dims(nb::handle sequence, const char* what);          // throws UserError above kMaxRank
DType to_dtype(int64_t code, const char* what);
Imm to_imm(nb::handle number);
Imm imm_of(double number);
nb::object from_imm(const Imm& imm);
nb::tuple from_dims(const Dims& dims);
template <class Ints>
nb::tuple from_ints(const Ints& ints) {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(ints.size()));
  if (!tuple) throw nb::python_error();
  for (size_t i = 0; i < ints.size(); ++i) PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(static_cast<long long>(ints[i])));
  return nb::steal<nb::tuple>(tuple);
}

// Members of a struct of counters into a dictionary: name, member, name, member, ...
template <class Counters>
void tell(nb::dict&, const Counters&) {}
template <class Counters, class Number, class... Rest>
void tell(nb::dict& d, const Counters& from, const char* name, Number Counters::* member, Rest... rest) {
  d[name] = from.*member;
  tell(d, from, rest...);
}
template <class Counters, class... Members>
nb::dict told(const Counters& from, Members... members) {
  nb::dict d;
  tell(d, from, members...);
  return d;
}

// A Python object held from C++; let go with the GIL, from whatever thread.
std::shared_ptr<void> hold(nb::handle object);
// Instructions [begin, end) of a program's code, as programs list them.
nb::list instructions_between(const ProgramCode& code, int begin, int end);
// A NumPy array on the value's memory (bfloat16 as uint16), which it keeps alive; None if it is not in memory.
nb::object to_array(const Value& value, const LeasePtr& lease, bool writable = false);
// A dtype as DLPack has it.
nb::dlpack::dtype dlpack_type(DType t);
nb::dict stats_counts(const Stats& stats);  // and the histogram
nb::dict stats_dict(const Stats& stats);    // and moments, NaN where no element is finite
nb::dict capture_stats();                   // of snapshots
// Where a framework's CPU tensor lies, through DLPack's exchange table; its memory is not held. False: its type has none, or it is of another
// kind (device, dtype, layout, rank). What is negated or conjugated only when read is not told.
bool look_at_tensor(nb::handle tensor, Value& v);
// Runs a graph's pending instructions (null: there were none), without the GIL if it takes long. Arguments as of Graph::flush.
// Another thread's flush of the same graph is waited for first.
std::shared_ptr<Launch> run_pending(Graph& g, const std::vector<int64_t>& keep, const std::vector<std::pair<int64_t, void*>>& outputs);

// If another thread runs what was pending: until it has, without the GIL. Not from a stop handler, whose launch others may wait for.
void wait_for_flush(const Graph& g);

// The handlers given to set_stop_handler, set_program_handler and set_input_handler.
StopHandler stop_handler();
bool stopping();  // there is a stop handler: a debugger is attached
Graph::ProgramHandler program_handler();
void tell_input();  // an instruction with new inputs has been recorded
void forget_handlers();
void forget_devices();

void bind_arrays(nb::module_& m);
void bind_exchange(nb::module_& m);
void bind_places(nb::module_& m);
void bind_graph(nb::module_& m);
void bind_programs(nb::module_& m);
void bind_replays(nb::module_& m);
void bind_tensor_replays(nb::module_& m);
void bind_hooks(nb::module_& m);
void bind_process(nb::module_& m);
void bind_heap(nb::module_& m);
void bind_device(nb::module_& m);
void bind_check(nb::module_& m);

// The segment that holds an area of the last launch, and its number there. Throws UserError.
std::pair<SegmentPtr, int> find_area(Program& p, int64_t area);
void bind_selftest(nb::module_& m);

}  // namespace dvm
