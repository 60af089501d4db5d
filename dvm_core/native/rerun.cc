#include "rerun.h"

#include <algorithm>

#include "device.h"
#include "device_memory.h"
#include "fork.h"
#include "stream.h"

namespace dvm {

namespace {

// A buffer of a simulated device that no log knows.
std::shared_ptr<Storage> result_memory(const Profile& profile, size_t bytes) {
  return profile.simulated ? device_adopt(profile, device_room(profile, bytes)) : allocate_unlogged(bytes);
}

void run_on(const Launch::Plan& plan, const Profile& profile, bool unfused, std::vector<Value>* values) {
  const ProgramCode& code = *plan.code;
  const auto count = static_cast<int>(code.instrs.size());
  if (profile.elsewhere) return (*profile.elsewhere)(code, 0, count, plan.keep, *values);
  const WhileRunning no_fork;
  SegmentRequest request;
  request.end = count;
  request.keep.assign(plan.keep.size(), 0);
  std::copy(plan.keep.begin() + code.value_of(0), plan.keep.end(), request.keep.begin() + code.value_of(0));
  request.unfused = unfused;
  request.profile = &profile;
  const SegmentPtr segment = plan.program->segment(code, plan.geometry, request, false);
  const std::lock_guard running(segment->running);
  const SegmentView& seen = view(*segment->segment);
  std::shared_ptr<Storage> workspace;
  if (seen.workspace_bytes > 0) workspace = allocate_unlogged(static_cast<size_t>(seen.workspace_bytes));
  std::vector<Stats> stats;
  std::vector<int> checks;
  RunIO io{&code, values, workspace ? workspace->data : nullptr, &stats, nullptr, 1, &checks};
  if (!profile.simulated) return run_unmeasured(*segment->segment, io);
  DeviceValues device(profile, values->size());
  device.prepare(*segment->segment, *values);
  io.values = &device.values();
  run_unmeasured(*segment->segment, io);
  device.fetch(*segment->segment, *values);
  fill_views(*segment->segment, values);
}

}  // namespace

Rerun::Rerun(Launch& launch, const Profile& profile, bool unfused, bool all) : plan_(launch.inputs_again()) {
  const ProgramCode& code = *plan_.code;
  for (size_t i = 0; i < code.instrs.size(); ++i) {
    const auto at = static_cast<size_t>(code.value_of(static_cast<int>(i)));
    if (all) plan_.keep[at] = 1;
    if (!plan_.keep[at]) continue;
    const Instr& instr = code.instrs[i];
    auto owner = result_memory(profile, static_cast<size_t>(instr.shape.size() * item_size(instr.dtype)));
    void* data = owner->data;
    plan_.values[at] = {data, instr.dtype, instr.shape, contiguous_strides(instr.shape), std::move(owner)};
  }
  // What lies on a device is read there by that device alone.
  for (size_t i = 0; i < code.inputs.size() && !profile.simulated; ++i) plan_.values[i] = host_value(plan_.values[i]);
  run_on(plan_, profile, unfused, &plan_.values);
}

Value Rerun::value(int local_id) const {
  if (local_id < 0 || local_id >= static_cast<int>(plan_.values.size()))
    throw UserError("no value " + std::to_string(local_id) + " in a program of " + std::to_string(plan_.values.size()));
  return plan_.values[static_cast<size_t>(local_id)];
}

}  // namespace dvm
