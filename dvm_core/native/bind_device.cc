// Devices: which there are, which is in use, their memory and copies, and those that Python adds.
#include <utility>

#include "array.h"
#include "bind_common.h"
#include "copies.h"
#include "device.h"
#include "device_memory.h"
#include "device_move.h"
#include "profile.h"
#include "steps.h"

namespace dvm {

using namespace nb::literals;

namespace {

nb::list profiles() {
  nb::list all;
  for (int i = 0; i < profile_count(); ++i) {
    const Profile& p = profile_at(i);
    using P = Profile;
    nb::dict d = told(p, "name", &P::name, "arch", &P::arch, "simulated", &P::simulated, "faithful", &P::faithful, "ub_bytes", &P::ub_bytes, "ub_reserve",
                      &P::ub_reserve, "vector_cores", &P::vector_cores, "cube_cores", &P::cube_cores, "memory_bytes", &P::memory_bytes);
    d["elsewhere"] = p.elsewhere != nullptr;
    d["events"] = p.simulated ? kEvents : 0;
    all.append(d);
  }
  return all;
}

nb::dict copies() {
  using S = CopyEngineStats;
  using R = ResidentStats;
  nb::dict d = told(copy_engine_stats(), "copies_in", &S::copies_in, "copies_out", &S::copies_out, "bytes_in", &S::bytes_in, "bytes_out", &S::bytes_out,
                    "faults", &S::faults, "copy_us", &S::copy_us);
  tell(d, resident_stats(), "resident_inputs", &R::inputs, "resident_results", &R::results, "resident_bytes", &R::bytes);
  return d;
}

nb::dict memory_of(const std::string& name) {
  using S = DeviceMemoryStats;
  return told(device_memory(find_profile(name)), "used", &S::used, "peak", &S::peak, "limit", &S::limit);
}

// None: a captured call still runs. With the GIL, but for the waiting: arrays are found and changed under it.
nb::object switch_device(const std::string& name, int64_t milliseconds) {
  const Profile& to = find_profile(name);
  DeviceMove move(to);
  if (&to != &current_profile()) {
    const BetweenSteps between(milliseconds);
    if (!between) return nb::none();
    add_arrays(move);
    {
      nb::gil_scoped_release unlocked;
      move.copy();
    }
    use_profile(to);
    move.commit();
    follow_arrays(move);
  }
  nb::dict d;
  d["buffers"] = move.buffers();
  d["bytes"] = move.bytes();
  return d;
}

// Called with the GIL by every launch on the device; let go when the interpreter ends.
std::vector<PyObject*> runners;

void add_device(const std::string& name, const std::string& arch, nb::handle run) {
  const size_t number = runners.size();
  add_profile(name, arch, [number](const ProgramCode& code, int begin, int end, const std::vector<uint8_t>& keep, const std::vector<Value>& values) {
    nb::gil_scoped_acquire locked;
    if (number >= runners.size()) throw UserError("the interpreter has ended");
    nb::dict read, made;
    const auto first = static_cast<size_t>(code.value_of(begin)), last = static_cast<size_t>(code.value_of(end));
    for (size_t v = 0; v < last; ++v) {
      Value value = values[v];
      static char nothing[8];
      if (v < code.inputs.size() && value.shape.size() == 0) value.data = nothing;  // an empty tensor may lie nowhere
      if (!value.data || (v >= first && !keep[v])) continue;
      nb::dict& into = v < first ? read : made;
      into[nb::int_(v)] = nb::make_tuple(to_array(value, nullptr, v >= first), static_cast<int>(value.dtype));
    }
    try {
      nb::borrow(runners[number])(code.inputs.size(), instructions_between(code, begin, end), read, made);
    } catch (nb::python_error& error) {
      // The core's own error is what an instruction of its own would have thrown, and is told as such.
      if (!error.matches(nb::module_::import_("dvm_core._core").attr("Error"))) throw;
      throw UserError(nb::cast<std::string>(nb::str(error.value())), nb::cast<uint32_t>(error.value().attr("place")));
    }
  });
  runners.push_back(run.inc_ref().ptr());
}

}  // namespace

void forget_devices() {
  for (PyObject* run : std::exchange(runners, {})) Py_DECREF(run);
}

void bind_device(nb::module_& m) {
  m.def("profiles", &profiles,
        "The devices: name, arch, simulated, faithful, elsewhere, ub_bytes, ub_reserve, vector_cores, cube_cores, events, memory_bytes.");
  m.def("device", [] { return current_profile().name; }, "The device later launches use.");
  m.def("set_device", &switch_device, "name"_a, "wait_ms"_a = 5000,
        "Chooses the device of later launches and moves the buffers of arrays there. Returns how many `buffers` and `bytes`, or None if captured "
        "calls of other threads still run after `wait_ms`: nothing has changed then. Error if a copy fails or there is no room: nothing has changed.");
  m.def("device_copies", &copies,
        "Copies to and from simulated devices: copies_in, copies_out, bytes_in, bytes_out, faults, copy_us (modelled); and what needed none: "
        "resident_inputs, resident_results, resident_bytes.");
  m.def("device_memory", &memory_of, "name"_a, "The memory of a simulated device: bytes used, peak and limit.");
  m.def("set_device_memory", &set_device_memory, "bytes"_a, "For tests: how much memory simulated devices have; 0: what their profiles say.");
  m.def("add_device", &add_device, "name"_a, "arch"_a, "run"_a,
        "A device of later launches, which call run(inputs, instructions, read, made): the number of inputs, some instructions, the values in memory they "
        "may read and those they are to make, by local id as (array, dtype).");
  m.def(
      "is_device_address", [](uintptr_t address) { return on_device(reinterpret_cast<void*>(address)); }, "address"_a,
      "Whether it is an address on a simulated device, which the host cannot read.");
  m.def(
      "device_addresses",
      [] {
        nb::list all;
        for (const DeviceBufferPtr& buffer : device_buffers()) all.append(nb::make_tuple(buffer->address, buffer->bytes, buffer->place().device->name));
        return all;
      },
      "Buffers with an address on a device: address, bytes, and the device that has them now.");
  m.def(
      "cast_route",
      [](const std::string& name, int from, int to) {
        const Profile& p = find_profile(name);
        const DType end = to_dtype(to, "cast_route");
        nb::list route;
        for (DType at = to_dtype(from, "cast_route"); at != end;) {
          at = next_cast(p, at, end);
          route.append(static_cast<int>(at));
        }
        return route;
      },
      "device"_a, "from_"_a, "to"_a, "The dtypes a cast goes through on a device, the last one included.");
  m.def("set_copy_timeout", &set_copy_timeout, "milliseconds"_a, "How long a copy to or from a device may take before the launch gives up (5000 at first).");
  m.def("set_link", &set_link, "latency_us"_a = -1, "bytes_per_us"_a = -1, "paced"_a = false,
        "The link of all simulated devices instead of their profiles' (negative: as there). paced: copies take that long, else it is only counted.");
  m.def(
      "plant_fault",
      [](const std::string& kind, int64_t after, int64_t milliseconds, const std::string& of, double rate, uint64_t seed) {
        plant_fault({kind, of, after, milliseconds, rate, seed});
      },
      "kind"_a, "after"_a = 0, "milliseconds"_a = 0, "of"_a = "", "rate"_a = 0, "seed"_a = 0,
      "For tests: what goes wrong: fail (half of the bytes arrive), stall, lose (the event) or memory; of copies in, out, snapshot or move. Once, "
      "after so many more; with a rate, that share of them until clear_faults, chosen by the seed.");
  m.def("clear_faults", &clear_faults, "For tests: nothing goes wrong any more.");
}

}  // namespace dvm
