// What @dvm.jit(mode="graph") makes of a function: an object that is called without a Python frame of its own where a replay stands for the
// call, and calls Python's wrapper where none does. To Python it looks like the function, as functools.update_wrapper makes it.
#include "replays.h"

#include <structmember.h>

namespace dvm {
namespace {

struct Function {
  PyObject_HEAD vectorcallfunc call;
  Replays* replays;       // of
  PyObject* held;         //   this object
  PyObject* otherwise;    // called where no replay stands for the call
  PyObject* attributes;
  PyObject* weak_references;
};

Function* of(PyObject* self) { return reinterpret_cast<Function*>(self); }

PyObject* call(PyObject* self, PyObject* const* arguments, size_t count, PyObject* names) {
  const auto given = static_cast<size_t>(PyVectorcall_NARGS(count));
  if (!names) {
    try {
      nb::object result = replay(*of(self)->replays, arguments, given);
      if (!result.is_none()) return result.release().ptr();
    } catch (nb::python_error& error) {
      error.restore();
      return nullptr;
    } catch (const std::exception&) {  // comes again in the wrapper, which says where it happened
    }
  }
  return PyObject_Vectorcall(of(self)->otherwise, arguments, count, names);
}

PyObject* make(PyTypeObject* type, PyObject* arguments, PyObject*) {
  PyObject *replays = nullptr, *otherwise = nullptr;
  if (!PyArg_ParseTuple(arguments, "OO", &replays, &otherwise)) return nullptr;
  Replays* const native = replays_at(replays);
  if (!native) return PyErr_Format(PyExc_TypeError, "ReplayedFunction takes Replays, not %s", Py_TYPE(replays)->tp_name);
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  of(self)->call = call;
  of(self)->replays = native;
  of(self)->held = Py_NewRef(replays);
  of(self)->otherwise = Py_NewRef(otherwise);
  return self;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(of(self)->held);
  Py_VISIT(of(self)->otherwise);
  Py_VISIT(of(self)->attributes);
  Py_VISIT(Py_TYPE(self));
  return 0;
}

// What it calls stays until it goes itself: it may be called while a cycle is taken apart.
int clear(PyObject* self) {
  Py_CLEAR(of(self)->attributes);
  return 0;
}

void destroy(PyObject* self) {
  PyObject_GC_UnTrack(self);
  PyTypeObject* type = Py_TYPE(self);
  if (of(self)->weak_references) PyObject_ClearWeakRefs(self);
  clear(self);
  Py_CLEAR(of(self)->otherwise);
  Py_CLEAR(of(self)->held);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* bound(PyObject* self, PyObject* object, PyObject*) { return object && object != Py_None ? PyMethod_New(self, object) : Py_NewRef(self); }

// What it has not itself (__code__ and the like, which frameworks read) is the wrapper's.
PyObject* attribute(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyErr_Clear();
  return PyObject_GetAttr(of(self)->otherwise, name);
}

PyObject* text(PyObject* self) {
  const nb::object name = nb::steal(PyObject_GetAttrString(self, "__qualname__"));
  if (!name.is_valid()) return nullptr;
  return PyUnicode_FromFormat("<function %U in graph mode at %p>", name.ptr(), self);
}

// Pickled by name, as functions are.
PyObject* by_name(PyObject* self, PyObject*) { return PyObject_GetAttrString(self, "__qualname__"); }

PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Function, call), READONLY, nullptr},
                         {"__dictoffset__", T_PYSSIZET, offsetof(Function, attributes), READONLY, nullptr},
                         {"__weaklistoffset__", T_PYSSIZET, offsetof(Function, weak_references), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};
PyMethodDef methods[] = {{"__reduce__", by_name, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyGetSetDef getters[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr}, {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                       {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_getattro, reinterpret_cast<void*>(attribute)},
                       {Py_tp_descr_get, reinterpret_cast<void*>(bound)},
                       {Py_tp_repr, reinterpret_cast<void*>(text)},
                       {Py_tp_members, members},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, getters},
                       {0, nullptr}};
PyType_Spec spec = {"dvm_core._core.ReplayedFunction", sizeof(Function), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, slots};

}  // namespace

void bind_replayed_function(nb::module_& m) {
  const nb::object type = nb::steal(PyType_FromSpec(&spec));
  if (!type.is_valid()) throw nb::python_error();
  m.attr("ReplayedFunction") = type;
}

}  // namespace dvm
