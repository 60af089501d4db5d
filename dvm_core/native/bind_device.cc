// Devices: which there are, which is in use, and what a simulated one finds wrong with its own code.
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

}  // namespace

void bind_device(nb::module_& m) {
  m.def("profiles", &profiles, "The devices: name, arch, simulated, faithful, ub_bytes, ub_reserve, vector_cores, cube_cores, events.");
  m.def("device", [] { return current_profile().name; }, "The device later launches use.");
  m.def(
      "set_device", [](const std::string& name) { use_profile(find_profile(name)); }, "name"_a,
      "Chooses the device of later launches. A launch that runs ends where it began.");
  m.def("device_copies", &copies, "Copies to and from simulated devices: copies_in, copies_out, bytes_in, bytes_out, faults, copy_us (modelled).");
  m.def("set_copy_timeout", &set_copy_timeout, "milliseconds"_a, "How long a copy to or from a device may take before the launch gives up (5000 at first).");
  m.def("plant_fault", &plant_fault, "kind"_a, "after"_a = 0, "milliseconds"_a = 0, "For tests: what goes wrong, once: fail, stall, lose or memory.");
}

}  // namespace dvm
