// MindSpore's plug-in for ms.jit(backend="dvm"): describes the graphs it is given to Python, where they are run.
// Compiled on demand against the headers of the MindSpore that is installed; it holds no Python objects, only the numbers of graphs.
#include "mindspore/include/custom_backend_api.h"

#include <map>
#include <string>
#include <vector>

#include "mindspore/ccsrc/include/utils/convert_utils_py.h"
#include "mindspore/ccsrc/include/utils/tensor_py.h"
#include "mindspore/core/include/ir/func_graph.h"
#include "mindspore/core/include/ir/functor.h"
#include "mindspore/core/include/ir/graph_utils.h"
#include "mindspore/core/include/ir/primitive.h"
#include "mindspore/core/include/ir/scope.h"
#include "mindspore/core/include/ops/op_def.h"
#include "mindspore/core/include/utils/trace_base.h"

namespace {
namespace py = pybind11;
using mindspore::AnfNode;
using mindspore::AnfNodePtr;
using mindspore::BaseRef;
using mindspore::CNode;
using mindspore::FuncGraph;
using mindspore::FuncGraphPtr;
using mindspore::Parameter;
using mindspore::PrimitivePtr;
using mindspore::Value;
using mindspore::ValueNode;
using mindspore::ValuePtr;
using mindspore::VectorRef;

const char kGraphs[] = "dvm_core.frontends.mindspore_backend.graphs";

py::object data(const ValuePtr& value) { return value == nullptr ? py::none() : mindspore::ValueToPyData(value); }

// What only says in which order things are done: Python does them in the order given.
bool orders(const AnfNodePtr& node) {
  const auto abstract = node->abstract();
  return (abstract != nullptr && abstract->isa<mindspore::abstract::AbstractMonad>()) || mindspore::HasAbstractMonad(node);
}

bool orders(const BaseRef& ref) { return mindspore::utils::isa<ValuePtr>(ref) && mindspore::utils::cast<ValuePtr>(ref)->isa<mindspore::Monad>(); }

// A graph and those it calls, as tuples. Nodes have numbers that are one for all of them.
class Description {
 public:
  explicit Description(const FuncGraphPtr& root) {
    number(root);
    for (size_t at = 0; at < graphs_.size(); ++at) described_.append(describe(FuncGraphPtr(graphs_[at])));  // there come more meanwhile
  }

  py::list graphs() const { return described_; }

 private:
  int number(const FuncGraphPtr& graph) {
    const auto [at, fresh] = graph_numbers_.try_emplace(graph.get(), static_cast<int>(graphs_.size()));
    if (fresh) graphs_.push_back(graph);
    return at->second;
  }

  int number(const AnfNodePtr& node) { return nodes_.try_emplace(node.get(), static_cast<int>(nodes_.size())).first->second; }

  py::tuple describe(const FuncGraphPtr& graph) {
    py::list parameters, steps;
    for (const auto& parameter : graph->parameters()) {
      if (orders(parameter)) continue;
      const auto shape = parameter->Shape();
      const auto name = parameter->cast<mindspore::ParameterPtr>()->name();
      parameters.append(py::make_tuple(number(parameter), name, shape != nullptr && shape->IsDynamic()));
    }
    for (const auto& node : mindspore::TopoSort(graph->get_return())) {
      if (orders(node)) continue;
      if (node->isa<CNode>()) {
        steps.append(call(node->cast<mindspore::CNodePtr>(), node->func_graph() == graph));
      } else if (node->isa<ValueNode>()) {
        const auto value = node->cast<mindspore::ValueNodePtr>()->value();
        if (value->isa<FuncGraph>()) {
          steps.append(py::make_tuple(number(node), "graph", number(value->cast<FuncGraphPtr>())));
        } else if (value->isa<mindspore::Primitive>()) {
          steps.append(py::make_tuple(number(node), "primitive", primitive(value->cast<PrimitivePtr>())));
        } else {
          steps.append(py::make_tuple(number(node), "value", data(value)));
        }
      }
    }
    return py::make_tuple(graph->ToString(), parameters, steps, number(graph->get_return()));
  }

  // own: of the graph itself, not of one around it.
  py::tuple call(const mindspore::CNodePtr& node, bool own) {
    py::list inputs, lines;
    for (const auto& input : node->inputs()) {
      if (!orders(input)) inputs.append(number(input));
    }
    for (const auto& line : mindspore::trace::GetSourceLineList(node)) lines.append(line);
    const bool backward = node->primal_attrs().count("forward_unique_id") != 0;
    const auto scope = node->scope() == nullptr ? std::string() : node->scope()->name();
    return py::make_tuple(number(node), "call", inputs, own, lines, scope, backward);
  }

  // What computes shapes from shapes, as a Python function of a list of them.
  static py::cpp_function shapes(const mindspore::ShapeCalcBaseFunctorPtr& functor) {
    return py::cpp_function([functor](const mindspore::ShapeArray& inputs) {
      mindspore::ElemPosIdx positions;
      for (size_t at = 0; at < inputs.size(); ++at) positions.push_back({at});
      return functor->Calc(inputs, positions);
    });
  }

  static py::tuple primitive(const PrimitivePtr& primitive) {
    py::dict attributes;
    py::list operands;  // by name, and whether it is an attribute to Python; none for ops of the older kind
    if (const auto* definition = mindspore::ops::GetOpDef(primitive->name())) {
      for (const auto& operand : definition->args_) operands.append(py::make_tuple(operand.arg_name_, operand.as_init_arg_));
    }
    for (const auto& [name, value] : primitive->attrs()) {
      if (value != nullptr && value->isa<mindspore::ShapeCalcBaseFunctor>()) {
        attributes[py::str(name)] = shapes(value->cast<mindspore::ShapeCalcBaseFunctorPtr>());
        continue;
      }
      try {
        attributes[py::str(name)] = data(value);
      } catch (const std::exception&) {  // what Python has no word for is nothing an op of ours reads
      }
    }
    return py::make_tuple(primitive->name(), attributes, operands);
  }

  std::vector<FuncGraphPtr> graphs_;
  std::map<FuncGraph*, int> graph_numbers_;
  std::map<AnfNode*, int> nodes_;
  py::list described_;
};

py::object argument(const BaseRef& ref) {
  if (mindspore::utils::isa<mindspore::tensor::TensorPtr>(ref)) {
    return mindspore::tensor::PackTensorToPyObject(mindspore::utils::cast<mindspore::tensor::TensorPtr>(ref));
  }
  return mindspore::BaseRefToPyData(ref);
}

BaseRef result(const py::handle& value) {
  if (value.is_none()) return BaseRef(mindspore::kNone);
  if (py::isinstance<py::bool_>(value)) return BaseRef(mindspore::MakeValue(value.cast<bool>()));
  if (py::isinstance<py::int_>(value)) return BaseRef(mindspore::MakeValue(value.cast<int64_t>()));
  if (py::isinstance<py::float_>(value)) return BaseRef(mindspore::MakeValue(value.cast<float>()));
  if (py::isinstance<py::tuple>(value) || py::isinstance<py::list>(value)) {
    VectorRef items;
    for (const auto& item : value) items.push_back(result(item));
    return BaseRef(std::make_shared<VectorRef>(items));
  }
  return BaseRef(mindspore::ConvertPyObjToTensor(py::reinterpret_borrow<py::object>(value)));
}

class DvmBackend : public mindspore::backend::BackendBase {
 public:
  mindspore::backend::BackendGraphId Build(const FuncGraphPtr& graph, const mindspore::backend::BackendJitConfig&) override {
    const py::gil_scoped_acquire gil;
    return py::module_::import(kGraphs).attr("add")(Description(graph).graphs()).cast<mindspore::backend::BackendGraphId>();
  }

  mindspore::backend::RunningStatus Run(mindspore::backend::BackendGraphId number, const VectorRef& inputs, VectorRef* outputs) override {
    const py::gil_scoped_acquire gil;
    py::list arguments;
    for (const auto& input : inputs) {
      if (!orders(input)) arguments.append(argument(input));
    }
    const py::object made = py::module_::import(kGraphs).attr("run")(number, arguments);
    outputs->push_back(result(made));
    return mindspore::backend::kRunningSuccess;
  }

  void ClearGraph(mindspore::backend::BackendGraphId number) override {
    if (Py_IsInitialized() == 0) return;
    const py::gil_scoped_acquire gil;
    py::module_::import(kGraphs).attr("remove")(number);
  }
};

const char dvm[] = "dvm";
MS_REGISTER_BACKEND(dvm, DvmBackend);
}  // namespace
