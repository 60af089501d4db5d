// The extension module: tables, the exception, and the bindings by theme.
#include "bind_common.h"
#include "coverage.h"
#include "isa.h"
#include "place.h"

namespace dvm {
namespace {

PyObject* error_type = nullptr;

// UserError becomes Error: message, then the user's line, and the place's id in .place.
void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const UserError& e) {
    const std::string where = place_text(e.place);
    const std::string text = where.empty() ? e.what() : std::string(e.what()) + " (" + where + ")";
    const nb::object error = nb::steal(PyObject_CallOneArg(error_type, nb::str(text.data(), text.size()).ptr()));
    if (!error.is_valid()) return;
    error.attr("place") = e.place;
    PyErr_SetObject(error_type, error.ptr());
  }
}

nb::tuple op_table() {
  nb::list ops;
  for (int code = 1; code < kOps; ++code) {
    const OpInfo& info = op_info(static_cast<Op>(code));
    if (!info.name) continue;
    constexpr const char* rules[] = {"same", "bool", "attr"};
    ops.append(nb::make_tuple(info.name, code, std::string(1, info.cls), info.arity, rules[static_cast<size_t>(info.rule)], info.meaning));
  }
  return nb::tuple(ops);
}

nb::tuple tile_table() {
  nb::list ids;
#define X(id, name, text, layout, meaning) ids.append(nb::make_tuple(id, #name, text, #layout, meaning));
  DVM_TILE_ISA(X)
#undef X
  return nb::tuple(ids);
}

nb::tuple dtype_table() {
  nb::list types;
  for (int code = 1; code < kDTypes; ++code) types.append(nb::make_tuple(dtype_name(static_cast<DType>(code)), code, item_size(static_cast<DType>(code))));
  return nb::tuple(types);
}

}  // namespace
}  // namespace dvm

NB_MODULE(_core, m) {
  namespace nb = nanobind;
  nb::set_leak_warnings(false);  // daemon threads (the debugger's, hot reload's) may hold a launch when the interpreter ends
  m.doc() = "The native core: capture, programs, launches, memory, hooks.";
  dvm::error_type = PyErr_NewExceptionWithDoc("dvm_core._core.Error", "Shape, dtype or bounds error; .place is the place id or 0.", PyExc_Exception, nullptr);
  if (!dvm::error_type) throw nb::python_error();
  m.attr("Error") = nb::borrow(dvm::error_type);
  m.attr("Error").attr("place") = 0;
  nb::register_exception_translator(dvm::translate);
  m.attr("OPS") = dvm::op_table();
  m.attr("TILE_OPS") = dvm::tile_table();
  m.attr("DTYPES") = dvm::dtype_table();
  m.attr("COVERAGE_FAULT") = dvm::kCoverageFault;
  dvm::bind_places(m);
  dvm::bind_graph(m);
  dvm::bind_arrays(m);
  dvm::bind_exchange(m);
  dvm::bind_replays(m);
  dvm::bind_tensor_replays(m);
  dvm::bind_programs(m);
  dvm::bind_hooks(m);
  dvm::bind_process(m);
  dvm::bind_heap(m);
  dvm::bind_device(m);
  dvm::bind_check(m);
  dvm::bind_selftest(m);
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] {
    dvm::forget_handlers();
    dvm::forget_devices();
  }));
}
