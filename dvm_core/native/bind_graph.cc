// Graph: the calls on the capture path read their arguments from the Python objects directly.
#include "bind_common.h"
#include "device_memory.h"
#include "fork.h"
#include "place.h"

namespace dvm {

using namespace nb::literals;

namespace {

// Host memory that Python names by its address. A device's address is none.
void* host_address(nb::handle number, const char* what) {
  const auto address = reinterpret_cast<void*>(static_cast<uintptr_t>(PyLong_AsUnsignedLongLong(number.ptr())));
  if (PyErr_Occurred()) throw nb::python_error();
  if (on_device(address))
    throw UserError(std::string(what) + ": this is an address on a device, which the host cannot read or write; take the array's numpy()");
  return address;
}

int64_t graph_input(Graph& g, nb::handle pointer, nb::handle shape, int dtype, nb::handle strides, nb::handle keep, std::string cls) {
  const Dims dims = to_dims(shape, "input: shape");
  Dims steps;
  if (!strides.is_none()) {
    steps = to_dims(strides, "input: strides");
    if (steps.rank != dims.rank) throw UserError("input: " + std::to_string(steps.rank) + " strides for shape " + shape_text(dims));
  }
  return g.input(host_address(pointer, "input"), to_dtype(dtype, "input"), dims, strides.is_none() ? nullptr : &steps, hold(keep), std::move(cls));
}

int64_t graph_op(Graph& g, int opcode, nb::handle operands, nb::handle attrs, nb::handle shape, int dtype, nb::handle imms, int64_t place, nb::handle name) {
  if (opcode <= 0 || opcode >= kOps) throw UserError("no opcode " + std::to_string(opcode));
  if (place < 0 || place > UINT32_MAX) throw UserError("no place " + std::to_string(place));
  RecordSample sample;
  Instr& filled = g.draft();
  filled.op = static_cast<Op>(opcode);
  filled.place = static_cast<uint32_t>(place);
  const Items ids(operands, "operands");
  filled.operands.resize(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t id = to_int(ids[i], "operand");
    filled.operands[i] = id < -1 || id > INT32_MAX ? INT32_MAX : static_cast<int32_t>(id);  // INT32_MAX: no value has that id
  }
  const Items numbers(attrs, "attrs");
  filled.attrs.resize(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) filled.attrs[i] = to_int(numbers[i], "attribute");
  const Items scalars(imms, "imms");
  filled.imms.resize(scalars.size());
  for (size_t i = 0; i < scalars.size(); ++i) filled.imms[i] = to_imm(scalars[i]);
  filled.dtype = to_dtype(dtype, op_name(filled.op));
  if (!shape.is_none()) filled.shape = to_dims(shape, op_name(filled.op));
  const Py_ssize_t letters = PyUnicode_GetLength(name.ptr());
  if (letters < 0) throw nb::python_error();
  if (letters > 0) filled.name = nb::cast<std::string>(name);
  const int64_t id = g.record(!shape.is_none());
  sample.done(*g.times);
  return id;
}

nb::object graph_flush(Graph& g, nb::handle keep, nb::handle outputs) {
  std::vector<int64_t> kept;
  std::vector<std::pair<int64_t, void*>> pairs;
  const Items ids(keep, "keep");
  for (size_t i = 0; i < ids.size(); ++i) kept.push_back(to_int(ids[i], "keep"));
  const Items outs(outputs, "outputs");
  for (size_t i = 0; i < outs.size(); ++i) {
    const Items pair(outs[i], "an output");
    if (pair.size() != 2) throw UserError("flush(outputs): pairs of value and address are wanted, got " + std::to_string(pair.size()) + " items");
    pairs.emplace_back(to_int(pair[0], "output"), host_address(pair[1], "flush(outputs)"));
  }
  const std::shared_ptr<Launch> launch = run_pending(g, kept, pairs);
  return launch ? nb::cast(launch) : nb::none();
}

thread_local int flights = 0;  // of this thread: more than one if a stop handler flushes too

// Marks a graph whose pending instructions run, unless somebody has.
class Flight {
 public:
  explicit Flight(Graph& g) : graph_(g), mine_(!g.in_flight.exchange(true) || g.flight_forks != forks()) {
    if (mine_) g.flight_forks = forks();
    ++flights;
  }
  ~Flight() {
    --flights;
    if (!mine_) return;
    graph_.in_flight.store(false, std::memory_order_release);
    graph_.in_flight.notify_all();
  }
  Flight(const Flight&) = delete;

 private:
  Graph& graph_;
  const bool mine_;
};

// With its type: an interruption says nothing else, and a KeyError only its key.
std::string text_of(const nb::python_error& error) {
  const std::string type = nb::cast<std::string>(nb::borrow(error.type()).attr("__name__")), said = nb::cast<std::string>(nb::str(error.value()));
  return type + ": " + (said.empty() ? "the call was interrupted" : said);
}

}  // namespace

std::shared_ptr<Launch> run_pending(Graph& g, const std::vector<int64_t>& keep, const std::vector<std::pair<int64_t, void*>>& outputs) {
  wait_for_flush(g);
  const SpanOf bind(g.times.get(), Phase::bind);
  const Flight flight(g);
  const int64_t first = g.first_pending();
  Graph::Flush f = g.flush(keep, outputs, program_handler(), stop_handler());
  try {
    if (f.launch && f.small) {
      // Other Python threads lose less by waiting a few microseconds than this one by asking for the GIL again.
      f.launch->run();
    } else if (f.launch) {
      const SpanOf regain(g.times.get(), Phase::waiting);  // of the GIL
      nb::gil_scoped_release unlocked;
      const SpanOf inside(g.times.get(), Phase::bind);
      f.launch->run();
    }
  } catch (const UserError& error) {
    g.failed(first, error);
    throw;
  } catch (const std::bad_alloc&) {
    g.failed(first, UserError("no memory to compute this"));
    throw;
  } catch (nb::python_error& error) {
    // A stop handler's, or that of a device reached through Python.
    g.failed(first, UserError(text_of(error)));
    throw;
  }
  g.finish(f);
  return f.launch;
}

void wait_for_flush(const Graph& g) {
  if (flights || !g.in_flight.load(std::memory_order_acquire) || g.flight_forks != forks()) return;
  nb::gil_scoped_release unlocked;
  g.in_flight.wait(true, std::memory_order_acquire);
}

void bind_graph(nb::module_& m) {
  const auto no_items = nb::tuple();
  nb::class_<Graph>(m, "Graph", "Ops recorded in order, run when flushed. Value ids count inputs and results together, from 0. One thread at a time.")
      .def(nb::init<std::string>(), "name"_a)
      .def_rw("name", &Graph::name)
      .def_rw("step", &Graph::step)
      .def("input", &graph_input, "pointer"_a, "shape"_a, "dtype"_a, "strides"_a.none() = nb::none(), "keep"_a.none() = nb::none(), "cls"_a = "",
           "An operand in memory, strides in elements. Returns its value id. Error for a bad shape, dtype or address.")
      .def("op", &graph_op, "opcode"_a, "operands"_a, "attrs"_a = no_items, "shape"_a.none() = nb::none(), "dtype"_a = 0, "imms"_a = no_items, "place"_a = 0,
           "name"_a = nb::str(""), "Records one instruction and returns the id of its result. Error if the operands do not fit.")
      .def(
          "shape", [](Graph& g, int64_t v) { return from_dims(g.node(v).instr.shape); }, "value"_a)
      .def(
          "dtype", [](Graph& g, int64_t v) { return static_cast<int>(g.node(v).instr.dtype); }, "value"_a)
      .def(
          "place", [](Graph& g, int64_t v) { return g.node(v).instr.place; }, "value"_a)
      .def(
          "opcode", [](Graph& g, int64_t v) { return static_cast<int>(g.node(v).instr.op); }, "value"_a, "0 for an input.")
      .def(
          "operands", [](Graph& g, int64_t v) { return from_ints(g.node(v).instr.operands); }, "value"_a)
      .def(
          "attrs", [](Graph& g, int64_t v) { return from_ints(g.node(v).instr.attrs); }, "value"_a)
      .def(
          "imms",
          [](Graph& g, int64_t v) {
            nb::list imms;
            for (const Imm& imm : g.node(v).instr.imms) imms.append(from_imm(imm));
            return nb::tuple(imms);
          },
          "value"_a)
      .def("set_name", &Graph::set_name, "value"_a, "name"_a)
      .def("pending", &Graph::pending, "Instructions recorded and not yet flushed.")
      .def(
          "inputs", [](const Graph& g) { return from_ints(std::vector<int64_t>(g.inputs().begin(), g.inputs().end())); },
          "The values in memory that pending instructions read, in the order of their program's inputs.")
      .def("size", &Graph::size, "Values so far, inputs and results.")
      .def(
          "in_memory", [](Graph& g, int64_t v) { return g.node(v).memory.data != nullptr; }, "value"_a)
      .def(
          "constant",
          [](Graph& g, int64_t v) {
            const auto& owner = g.node(v).memory.owner;
            return owner && owner->panels;
          },
          "value"_a, "Whether a value lies in the memory of a dvm.constant, of which products keep panels.")
      .def(
          "array", [](Graph& g, int64_t v) { return to_array(g.node(v).memory, g.node(v).lease); }, "value"_a,
          "A read-only view of a value in memory, else None.")
      .def("flush", &graph_flush, "keep"_a = no_items, "outputs"_a = no_items,
           "Runs all pending instructions. keep: values that must be in memory afterwards; outputs: (value, address) pairs written there.")
      .def("release", [](Graph& g, const std::vector<int64_t>& values) { g.release(values); }, "values"_a, "Forgets the memory of these values.");
}

}  // namespace dvm
