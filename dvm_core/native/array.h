// The arrays of dvm.tensor: values in memory or still to be computed, and where they record. Used with the GIL held.
#pragma once
#include "bind_common.h"

namespace dvm {

struct Recorder;

// What a dvm.tensor array is: Python's class Array is made of it.
struct Tensor {
  DType dtype = DType::kNone;
  Dims shape;
  bool ready = false;        // `memory` is the value
  Value memory;
  LeasePtr lease;
  nb::object array;          // NumPy's view of the memory, once somebody asked for it, or what the memory came from
  nb::object recorder;       // while it is to be computed: where (a Recorder)
  uint64_t recorded_by = 0;  // number of the recorder that knows it
  int64_t value = -1;        //   by this id
  bool given = false;        // away: its memory may be another array's
  void give_away();
  Tensor() = default;
  Tensor(const Tensor&) = delete;
  ~Tensor();
};

// A graph being recorded, and the arrays that wait for its values.
struct Recorder {
  Recorder(nb::object graph, nb::handle owner);
  Recorder(const Recorder&) = delete;
  ~Recorder();
  const uint64_t number;             // no two have the same
  const nb::object graph_object;
  Graph& graph;
  nb::object owner;                  // weak reference to the captured call whose graph it is; None: the thread's own
  std::vector<Tensor*> waiting;      // by value id; null: nobody waits
  std::vector<int64_t> wanted();     // ids of waiting arrays that are not in memory yet
  void take_over();                  // waiting arrays whose value is in memory now have it
};

// Where the calling thread records: the graph of its active capture, or one of its own.
nb::object current_recorder();
void set_active_capture(PyObject* capture);  // null: none
PyObject* active_capture();

// The value id of an array for a recorder's graph; computed elsewhere first if it must be.
int64_t value_of(Recorder& recorder, Tensor& tensor);
// Runs what is pending where the array's value is, and has it in memory. Throws UserError or a Python exception.
void compute(Tensor& tensor);
// Records the graph's draft (operands filled in) and returns the Array of its result. sample: begun by the caller, done here.
nb::object record_array(nb::handle recorder, bool shape_given, const RecordSample& sample);
// An Array on memory.
nb::object array_on(Value memory, LeasePtr lease, nb::object array);

// Python's class Array, and flush(capture) for captured calls.
void set_array_class(nb::handle cls, nb::handle flush_capture);
bool is_array(nb::handle h);  // of exactly that class

}  // namespace dvm
