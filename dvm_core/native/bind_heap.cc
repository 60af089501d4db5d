// The Python heap, looked at so that no other thread can tell.
#include "bind_common.h"

namespace dvm {

using namespace nb::literals;

namespace {

// gc.get_objects() holds a reference to everything, also to a tuple that native code of another thread is still filling and has let go of
// the GIL for; PyTuple_SetItem then refuses with SystemError, and the user's program dies of our looking. Here the GIL is kept from the
// making of the list to its end, and only functions are handed out.
nb::list functions_alive(int generations, nb::handle also) {
  const nb::object get = nb::module_::import_("gc").attr("get_objects");
  nb::list found;
  for (int g = 0; g < generations || g == 0; ++g) {
    const nb::object things = generations > 0 ? get(g) : get();
    const Py_ssize_t n = PyList_GET_SIZE(things.ptr());
    for (Py_ssize_t i = 0; i < n; ++i)
      if (PyObject* thing = PyList_GET_ITEM(things.ptr(), i); PyFunction_Check(thing) || (PyObject*)Py_TYPE(thing) == also.ptr())
        found.append(nb::handle(thing));
  }
  return found;
}

}  // namespace

void bind_heap(nb::module_& m) {
  m.def("functions_alive", &functions_alive, "generations"_a = 0, "also"_a = nb::none(),
        "Python functions, and objects of the type `also`, the garbage collector knows of: of its youngest `generations`, 0: all. Other threads cannot observe "
        "the search.");
}

}  // namespace dvm
