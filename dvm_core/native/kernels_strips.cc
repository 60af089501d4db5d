// The strips of one SIMD level (DVM_LEVEL), compiled once per level as kernels_simd.cc is.
#include "kernels_row_loops.h"
#include "kernels_steps.h"
#include "kernels_update.h"

#define DVM_PASTE_(a, b) a##b
#define DVM_PASTE(a, b) DVM_PASTE_(a, b)

namespace dvm {

extern const StripKernels DVM_PASTE(strip_table_, DVM_LEVEL);
constinit const StripKernels DVM_PASTE(strip_table_, DVM_LEVEL) = {
    DVM_LEVEL::strip_step,   DVM_LEVEL::strip,
    DVM_LEVEL::kStripLoops,  int(sizeof(DVM_LEVEL::kStripLoops) / sizeof(DVM_LEVEL::kStripLoops[0])),
    DVM_LEVEL::kUpdateLoops, int(sizeof(DVM_LEVEL::kUpdateLoops) / sizeof(DVM_LEVEL::kUpdateLoops[0]))};

}  // namespace dvm
