// The arrays of dvm.tensor: values in memory or still to be computed, and where they record. Used with the GIL held.
#pragma once
#include "bind_common.h"

namespace dvm {

class DeviceMove;

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
  bool constant() const { return memory.panels; }
  void give_away();
  Tensor();
  Tensor(const Tensor&) = delete;
  ~Tensor();
  Tensor *before, *after;    // in the list of all arrays
};

// Switching devices: memory that belongs to arrays goes along, and arrays have it where it is.
void add_arrays(DeviceMove& move);
void follow_arrays(const DeviceMove& move);

// A graph being recorded, and the arrays that wait for its values.
class Recorder {
 public:
  Recorder(nb::object graph, nb::handle owner);
  Recorder(const Recorder&) = delete;
  ~Recorder();
  uint64_t number;                   // no two have the same, nor one before and after its graph began again
  const nb::object graph_object;
  Graph& graph;
  nb::object owner;                  // weak reference to the captured call whose graph it is; None: the thread's own
  std::vector<Tensor*> waiting;      // by value id; null: nobody waits
  bool over = false;                 // nothing more is recorded here: a thread's own graph that was run or moved

  void wait(Tensor& tensor, int64_t id);
  void drop(const Tensor& tensor);      // it waits no longer
  void add_input(Tensor& tensor);       // which is in memory
  std::vector<int64_t> wanted();        // ids of waiting arrays that are not in memory yet
  void take_over();                     // waiting arrays whose value is in memory now have it
  void flush();                         // runs what is pending. Throws UserError or a Python exception
  bool grown() const { return graph.size() >= look_values_ || input_bytes_ >= look_bytes_; }
  void look();
  bool revive();  // one that is over and that nobody else holds: as if newly made

 private:
  void begin_again();
  int64_t waiters_ = 0, input_bytes_ = 0, look_values_, look_bytes_;
};
Recorder& recorder_at(nb::handle h);

// Where the calling thread records: the graph of its active capture, or one of its own.
nb::object current_recorder();
void set_active_capture(PyObject* capture, bool aside = false);  // null: none; aside: for a while, the captured call goes on
PyObject* active_capture();
void note_read();  // of a value in Python, to the active capture: no replay can stand for its call
void set_flush_of_capture(nb::handle flush_capture);  // Python's flush(capture)

// An instruction about to be recorded: where, and its operands' values there (null: none), computed elsewhere first if they must be. If it
// is not recorded after all, the graph is left without what the operands added to it.
class Recording {
 public:
  Recording(Tensor* const* operands, size_t count);  // held by the caller
  ~Recording();
  Recording(const Recording&) = delete;
  Recorder& recorder() const { return recorder_at(held_); }
  // Records the graph's draft (operands filled in) and returns the Array of its result. sample: begun by the caller, done here.
  nb::object done(bool shape_given, RecordSample& sample);

 private:
  // Before the graph is touched: it may collect garbage, and the last array that waits for this recorder may go with it, which begins the
  // graph again.
  nb::object made_;
  nb::object held_;
  Tensor* const* const operands_;
  const size_t count_;
  int64_t first_ = 0;  // value that was not there before
  bool recorded_ = false;
};

// Runs what is pending where the array's value is, and has it in memory. Throws UserError or a Python exception.
void compute(Tensor& tensor);
// An Array on memory.
nb::object array_on(Value memory, LeasePtr lease, nb::object array);
// The same on a block of its own, with dtype, shape and strides of `like`.
nb::object array_of_result(const Value& like, std::shared_ptr<Storage> owner);

// A copy of the array's values that nobody can write, contiguous; products keep its panels.
nb::object constant_of(Tensor& tensor);

// Python's class Array.
void set_array_class(nb::handle cls);
void set_numpy(nb::handle array, nb::dict dtypes);  // NumPy's array class, and the codes of its dtypes that are ours as they are
bool is_array(nb::handle h);  // of exactly that class

}  // namespace dvm
