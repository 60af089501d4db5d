// The replays of a function, and the object that a caller of the function calls.
#pragma once
#include "bind_common.h"
#include "replay.h"

namespace dvm {

class Replays;
Replays* replays_at(nb::handle h);  // null: it is something else
// The result of the function for these arguments, None if it must be called. With the GIL. Throws UserError or a Python exception.
nb::object replay(Replays& replays, PyObject* const* arguments, size_t count);

void bind_replayed_function(nb::module_& m);

}  // namespace dvm
