// The native stack walk behind user_place. What is known about a code object (library or not, the place of each instruction) hangs on
// the code object itself, so it dies with it and needs no look-up by address.
#include <Python.h>

#include <memory>
#include <string_view>
#include <unordered_map>

#include "place.h"

#if PY_VERSION_HEX < 0x030b0000
#include <frameobject.h>  // where Python 3.10 declares PyFrame_GetBack
#endif

#if PY_VERSION_HEX >= 0x030c0000
#define DVM_REQUEST_INDEX PyUnstable_Eval_RequestCodeExtraIndex
#define DVM_GET_EXTRA PyUnstable_Code_GetExtra
#define DVM_SET_EXTRA PyUnstable_Code_SetExtra
#else
#define DVM_REQUEST_INDEX _PyEval_RequestCodeExtraIndex
#define DVM_GET_EXTRA _PyCode_GetExtra
#define DVM_SET_EXTRA _PyCode_SetExtra
#endif

namespace dvm {
namespace {

std::vector<std::string> library_prefixes;
uint32_t prefixes_version = 1;

struct CodeMemo {
  uint32_t version = 0;  // of the prefixes `library` was decided with
  bool library = false;
  std::unordered_map<int, uint32_t> places;  // by instruction offset
};

Py_ssize_t memo_index() {
  static const Py_ssize_t index = DVM_REQUEST_INDEX([](void* memo) { delete static_cast<CodeMemo*>(memo); });
  return index;
}

struct Ref {
  PyObject* object;
  explicit Ref(PyObject* o) : object(o) {}
  Ref(const Ref&) = delete;
  ~Ref() { Py_XDECREF(object); }
};

std::string text_of(PyObject* str) {
  Py_ssize_t size = 0;
  const char* data = str ? PyUnicode_AsUTF8AndSize(str, &size) : nullptr;
  if (!data) {
    PyErr_Clear();
    return "";
  }
  return {data, static_cast<size_t>(size)};
}

std::string attribute(PyObject* object, const char* name) {
  const Ref value(PyObject_GetAttrString(object, name));
  if (!value.object) PyErr_Clear();
  return text_of(value.object);
}

CodeMemo* memo_of(PyCodeObject* code) {
  void* extra = nullptr;
  if (DVM_GET_EXTRA(reinterpret_cast<PyObject*>(code), memo_index(), &extra) != 0) PyErr_Clear();
  auto* memo = static_cast<CodeMemo*>(extra);
  if (!memo) {
    auto made = std::make_unique<CodeMemo>();
    if (DVM_SET_EXTRA(reinterpret_cast<PyObject*>(code), memo_index(), made.get()) != 0) {
      PyErr_Clear();
      return nullptr;
    }
    memo = made.release();
  }
  if (memo->version != prefixes_version) {
    const std::string file = attribute(reinterpret_cast<PyObject*>(code), "co_filename");
    memo->library = std::string_view(file).substr(0, 8) == "<frozen ";
    for (const std::string& prefix : library_prefixes) memo->library = memo->library || file.compare(0, prefix.size(), prefix) == 0;
    memo->version = prefixes_version;
  }
  return memo;
}

// What a place does without is forgotten, but a Ctrl-C that came meanwhile comes again.
void forget_error() {
  if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
  PyErr_Clear();
}

// The line's text, as linecache has it (it knows notebooks and doctests too); "" if there is none.
std::string source_line(const std::string& file, int line) {
  const Ref module(PyImport_ImportModule("linecache"));
  if (!module.object) {
    forget_error();
    return "";
  }
  const Ref text(PyObject_CallMethod(module.object, "getline", "si", file.c_str(), line));
  if (!text.object) forget_error();
  return text_of(text.object);
}

// A byte offset in UTF-8 text, from 0, to a column in UTF-16 code units, from 1.
int utf16_column(const std::string& text, int offset) {
  int column = 1;
  for (size_t i = 0; i < text.size() && static_cast<int>(i) < offset; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0) != 0x80) column += byte >= 0xf0 ? 2 : 1;
  }
  return static_cast<int>(text.size()) < offset ? offset + 1 : column;
}

uint32_t make_place(PyFrameObject* frame, PyCodeObject* code, [[maybe_unused]] int offset) {
  auto* object = reinterpret_cast<PyObject*>(code);
  Place p;
  p.file = attribute(object, "co_filename");
  p.function = attribute(object, PY_VERSION_HEX >= 0x030b0000 ? "co_qualname" : "co_name");
#if PY_VERSION_HEX >= 0x030b0000
  int line = 0, column = -1, end_line = 0, end_column = -1;
  if (offset >= 0 && PyCode_Addr2Location(code, offset, &line, &column, &end_line, &end_column) && line > 0) {
    p.line = line;
    p.end_line = end_line > 0 ? end_line : line;
    if (column >= 0) p.column = utf16_column(source_line(p.file, p.line), column);
    if (end_column >= 0) p.end_column = utf16_column(source_line(p.file, p.end_line), end_column);
  }
#endif
  if (p.line <= 0) p.line = p.end_line = PyFrame_GetLineNumber(frame);
  return intern_place(p);
}

int offset_of(PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030b0000
  return PyFrame_GetLasti(frame);
#else
  return PyFrame_GetLineNumber(frame);  // before 3.11 there are no columns: the line says as much
#endif
}

}  // namespace

void set_library_prefixes(std::vector<std::string> prefixes) {
  library_prefixes = std::move(prefixes);
  ++prefixes_version;
}

uint32_t user_place(int skip) {
  PyFrameObject* frame = PyEval_GetFrame();
  if (!frame) {
    PyErr_Clear();
    return 0;
  }
  Py_INCREF(frame);
  uint32_t id = 0;
  while (frame) {
    if (skip > 0) {
      --skip;
    } else {
      PyCodeObject* code = PyFrame_GetCode(frame);
      CodeMemo* memo = memo_of(code);
      if (memo && !memo->library) {
        const int offset = offset_of(frame);
        const auto known = memo->places.find(offset);
        if (known != memo->places.end()) {
          id = known->second;
        } else {
          id = make_place(frame, code, offset);
          memo->places.emplace(offset, id);  // make_place may run Python, but never frees this running code
        }
      }
      Py_DECREF(code);
      if (id) break;
    }
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  Py_XDECREF(frame);
  return id;
}

}  // namespace dvm
