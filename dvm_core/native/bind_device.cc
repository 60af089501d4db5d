// Devices: which there are, which is in use, and those that Python adds.
#include <utility>

#include "bind_common.h"
#include "device.h"
#include "profile.h"

namespace dvm {

using namespace nb::literals;

namespace {

nb::list profiles() {
  nb::list all;
  for (int i = 0; i < profile_count(); ++i) {
    const Profile& p = profile_at(i);
    nb::dict d;
    d["name"] = p.name;
    d["arch"] = p.arch;
    d["simulated"] = p.simulated;
    d["faithful"] = p.faithful;
    d["ub_bytes"] = p.ub_bytes;
    d["ub_reserve"] = p.ub_reserve;
    d["vector_cores"] = p.vector_cores;
    d["cube_cores"] = p.cube_cores;
    d["events"] = p.simulated ? kEvents : 0;
    all.append(d);
  }
  return all;
}

nb::dict copies() {
  const DeviceStats s = device_stats();
  nb::dict d;
  d["copies_in"] = s.copies_in;
  d["copies_out"] = s.copies_out;
  d["bytes_in"] = s.bytes_in;
  d["bytes_out"] = s.bytes_out;
  d["faults"] = s.faults;
  d["copy_us"] = s.copy_us;
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
      if (!values[v].data || (v >= first && !keep[v])) continue;
      nb::dict& into = v < first ? read : made;
      into[nb::int_(v)] = nb::make_tuple(to_array(values[v], nullptr, v >= first), static_cast<int>(values[v].dtype));
    }
    nb::borrow(runners[number])(code.inputs.size(), instructions_between(code, begin, end), read, made);
  });
  runners.push_back(run.inc_ref().ptr());
}

}  // namespace

void forget_devices() {
  for (PyObject* run : std::exchange(runners, {})) Py_DECREF(run);
}

void bind_device(nb::module_& m) {
  m.def("profiles", &profiles, "The devices: name, arch, simulated, faithful, ub_bytes, ub_reserve, vector_cores, cube_cores, events.");
  m.def("device", [] { return current_profile().name; }, "The device later launches use.");
  m.def(
      "set_device", [](const std::string& name) { use_profile(find_profile(name)); }, "name"_a,
      "Chooses the device of later launches. A launch that runs ends where it began.");
  m.def("add_device", &add_device, "name"_a, "arch"_a, "run"_a,
        "A device of later launches, which call run(inputs, instructions, read, made): the number of inputs, some instructions, the values in memory they "
        "may read and those they are to make, by local id as (array, dtype).");
  m.def("device_copies", &copies, "Copies to and from simulated devices: copies_in, copies_out, bytes_in, bytes_out, faults, copy_us (modelled).");
  m.def("set_copy_timeout", &set_copy_timeout, "milliseconds"_a, "How long a copy to or from a device may take before the launch gives up (5000 at first).");
  m.def("plant_fault", &plant_fault, "kind"_a, "after"_a = 0, "milliseconds"_a = 0, "For tests: what goes wrong, once: fail, stall, lose or memory.");
}

}  // namespace dvm
