#include "product.h"

#include <algorithm>
#include <utility>

#include "encode.h"
#include "narrow.h"
#include "pool.h"

namespace dvm {
namespace {

// Reading B where it lies costs a few percent more than reading panels; packing it costs what some twelve rows of the product do.
constexpr int64_t kRowsInPlace = 512, kRowsForPanels = 16;

bool has_panels(const Product& p) { return p.dtype == DType::kF32; }

int64_t line_bytes(const Product& p) { return (p.k * item_size(p.dtype) + 127) / 128 * 128; }

// B is one column of float32: each element is the product of two vectors, summed as a row is.
void multiply_column(Core& c, const Product& p, const void* column, const float* a, int64_t a_row, int64_t a_col, int64_t rows, float* dst) {
  constexpr int kItem = sizeof(float);
  uint8_t* line = c.ub + p.ub;
  auto* b = reinterpret_cast<float*>(line + line_bytes(p));
  auto* products = reinterpret_cast<float*>(line + 2 * line_bytes(p));
  c.run.k.copy_in(b, column, 1, p.k, 0, p.b.row * kItem, kItem);
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = a + r * a_row;
    if (a_col != 1) {
      c.run.k.copy_in(line, row, 1, p.k, 0, a_col * kItem, kItem);
      row = reinterpret_cast<const float*>(line);
    }
    c.run.k.binary[int(Op::kMUL)][int(DType::kF32)](products, row, b, p.k);
    c.run.k.reduce_row[int(Op::kSUM)][int(DType::kF32)](dst + r, products, 1, p.k);
  }
}

}  // namespace

const uint8_t* matrix_of_b(const Run& run, const Product& p, int64_t number) {
  int64_t offset = 0;
  for (auto axis = p.axes.rbegin(); axis != p.axes.rend(); ++axis) {
    if (!axis->b_matrix) continue;
    offset += number % axis->extent * axis->b;
    number /= axis->extent;
  }
  return static_cast<const uint8_t*>(run.base[p.b.slot]) + offset * item_size(p.from);
}

Product make_product(const ProgramCode& code, const Resolved& resolved, int i) {
  const Instr& in = code.instrs[static_cast<size_t>(i)];
  const Dims &a = shape_of(code, in.operands[0]), &b = shape_of(code, in.operands[1]);
  const Dims &sa = resolved.access[in.operands[0]].strides, &sb = resolved.access[in.operands[1]].strides;
  const bool ta = in.attrs[0], tb = in.attrs[1];
  Product p;
  p.from = in.dtype;
  p.dtype = compute_dtype(in.dtype);
  p.m = in.shape[in.shape.rank - 2];
  p.n = in.shape[in.shape.rank - 1];
  p.k = a[a.rank - (ta ? 2 : 1)];
  p.a.row = sa[a.rank - (ta ? 1 : 2)];
  p.a.col = sa[a.rank - (ta ? 2 : 1)];
  p.b.row = sb[b.rank - (tb ? 1 : 2)];
  p.b.col = sb[b.rank - (tb ? 2 : 1)];
  const auto outer = [](Dims d) {
    d.rank -= 2;
    return d;
  };
  const Dims batch = outer(in.shape), batch_a = broadcast_strides(outer(a), outer(sa), batch), batch_b = broadcast_strides(outer(b), outer(sb), batch);
  for (int x = batch.rank - 1; x >= 0; --x) {
    const int64_t extent = batch[x];
    if (extent == 1) continue;
    // A weight used by all batches, whose rows of A go on regularly: more rows of one product.
    if (p.axes.empty() && batch_b[x] == 0 && batch_a[x] == p.m * p.a.row) {
      p.m *= extent;
      continue;
    }
    p.axes.push_back({extent, batch_a[x], batch_b[x], batch_a[x] ? p.a.matrices : 0, batch_b[x] ? p.b.matrices : 0});
    p.batches *= extent;
    if (batch_a[x]) p.a.matrices *= extent;
    if (batch_b[x]) p.b.matrices *= extent;
  }
  std::reverse(p.axes.begin(), p.axes.end());
  return p;
}

// B is read where it lies: its rows are what panels would be.
static bool in_place(const Product& p) { return p.from == DType::kF32 && p.b.col == 1; }

int64_t plan_product(Product* p, const Geometry& g) {
  if (!has_panels(*p)) return 0;
  if (p->n == 1) return p->from == p->dtype ? 3 * line_bytes(*p) : 0;
  const int64_t times = p->batches / p->b.matrices, tiles = (p->m + g.tile_rows - 1) / g.tile_rows;
  p->packs_before = in_place(*p) ? times * p->m > kRowsInPlace && times * tiles > 1 : times * tiles > 1;
  return 0;
}

std::vector<SharedPanels> share_panels(std::vector<AreaCode>* areas) {
  struct Use {
    Product* product;
    const GlobalSlot* slot;
    int area;
  };
  std::vector<std::vector<Use>> uses;  // by B
  for (size_t a = 0; a < areas->size(); ++a)
    for (Product& p : (*areas)[a].products) {
      if (!has_panels(p) || p.n == 1 || p.b.matrices > 1 || in_place(p) || p.narrows) continue;
      const GlobalSlot& s = (*areas)[a].slots[static_cast<size_t>(p.b.slot)];
      const auto same = std::find_if(uses.begin(), uses.end(), [&](const std::vector<Use>& of) {
        const Product& q = *of[0].product;
        const GlobalSlot& o = *of[0].slot;
        return o.kind == s.kind && o.value == s.value && o.offset == s.offset && q.from == p.from && q.k == p.k && q.n == p.n && q.b.row == p.b.row &&
               q.b.col == p.b.col;
      });
      (same == uses.end() ? uses.emplace_back() : *same).push_back({&p, &s, static_cast<int>(a)});
    }
  std::vector<SharedPanels> shared;
  for (const std::vector<Use>& of : uses) {
    int64_t rows = 0;
    for (const Use& use : of) rows += use.product->batches * use.product->m;
    if (of.size() < 2 || rows < kRowsForPanels) continue;
    SharedPanels& s = shared.emplace_back(of[0].product, std::vector<Product*>(), of.back().area);
    of[0].product->packs_before = true;
    for (size_t i = 1; i < of.size(); ++i) {
      of[i].product->packs_before = of[i].product->packed_earlier = true;
      s.others.push_back(of[i].product);
    }
  }
  return shared;
}

// Rows in the first-level cache are read as fast as panels.
bool gains_from_panels(const Product& p) {
  constexpr int64_t kNear = 8192;
  return has_panels(p) && p.n > 1 && p.ub < 0 && !p.narrows && !(in_place(p) && p.k * p.n <= kNear);
}

int64_t panel_bytes(const Kernels& k, const Product& p) { return (static_cast<int64_t>(k.packed_b_bytes(p.k, p.n, p.from)) + 127) / 128 * 128; }

void pack_matrices(const Run& run, const Product& p, uint8_t* to) {
  constexpr int64_t kPanels = 4 * 32;  // columns packed by one unit
  const int64_t pieces = (p.n + kPanels - 1) / kPanels, stride = panel_bytes(run.k, p);
  parallel_for(
      p.b.matrices * pieces,
      [&](int64_t unit, int) {
        const int64_t number = unit / pieces, col = unit % pieces * kPanels;
        uint8_t* dst = to + number * stride + run.k.packed_b_bytes(p.k, col, p.from);
        run.k.pack_b(dst, matrix_of_b(run, p, number) + col * p.b.col * item_size(p.from), p.b.row, p.b.col, p.k, std::min(kPanels, p.n - col), p.from);
      },
      p.b.matrices * p.k * p.n / 4 + 1);
}

void prepare_product(const Run& run, const Product& p, bool kept) {
  if (p.narrows) check_finite(run, p);
  if (p.packs_before && !p.packed_earlier && !kept) pack_matrices(run, p, run.workspace(p.packed));
}

// Rows of the product, batch after batch.
void do_matmul(Core& c, const uint64_t* w) {
  const Product& p = c.run.area.products[operand_a(w[1])];
  const uint8_t* const kept = c.run.kept ? c.run.kept[operand_a(w[1])] : nullptr;
  const uint8_t* const panels = kept ? kept : p.packs_before ? c.run.workspace(p.packed) : nullptr;
  const int64_t matrix = panels ? panel_bytes(c.run.k, p) : 0;
  const int item = item_size(p.from);
  const bool in_memory = is_global(head_dst(*w)), chained = p.chained();
  const int64_t col = chained ? 0 : c.col, cols = chained ? p.n : c.cols;
  const int64_t dst_row = chained ? p.n : in_memory ? c.run.area.space.cols : c.cols;
  const int64_t a_row = chained ? c.cols : p.a.row, a_col = chained ? 1 : p.a.col;
  const auto* left = static_cast<const uint8_t*>(chained ? c.pointer(operand_b(w[1])) : c.run.base[p.a.slot]);
  const auto* right = static_cast<const uint8_t*>(c.run.base[p.b.slot]);
  auto* dst = static_cast<uint8_t*>(c.pointer(head_dst(*w)));
  for (int64_t r = c.row; r < c.row + c.rows;) {
    int64_t batch = r / p.m, in_batch = r % p.m, a = 0, b = col * p.b.col, b_matrix = 0;
    const int64_t some = std::min(p.m - in_batch, c.row + c.rows - r);
    for (auto axis = p.axes.rbegin(); axis != p.axes.rend(); ++axis) {
      const int64_t digit = batch % axis->extent;
      batch /= axis->extent;
      a += digit * axis->a;
      b += digit * axis->b;
      b_matrix += digit * axis->b_matrix;
    }
    const uint8_t* pa = left + (chained ? (r - c.row) * a_row : a + in_batch * a_row) * item;
    const uint8_t* pb = right + b * item;
    if (!has_panels(p)) {
      c.run.k.gemm_generic(dst, pa, pb, some, cols, p.k, a_row, a_col, p.b.row, p.b.col, dst_row, p.dtype);
    } else if (p.ub >= 0) {
      multiply_column(c, p, pb, reinterpret_cast<const float*>(pa), a_row, a_col, some, reinterpret_cast<float*>(dst));
    } else {
      GemmArgs g{some, cols, p.k, pa, a_row, a_col, nullptr, reinterpret_cast<float*>(dst), dst_row, false, pb, p.b.row, p.b.col, p.from};
      if (p.from != p.dtype) {
        g.half = dst;
        g.half_row = dst_row;
        g.c = p.wide >= 0 ? reinterpret_cast<float*>(c.ub + p.wide) : nullptr;
        g.ldc = cols;
      }
      if (panels) g.b_packed = panels + b_matrix * matrix + c.run.k.packed_b_bytes(p.k, col, p.from);
      // One column: as a row, so that the sums of several rows share a vector.
      if (p.n == 1) {
        std::swap(g.m, g.n);
        std::swap(g.a, g.b);
        std::swap(g.a_row, g.b_col);
        std::swap(g.a_col, g.b_row);
        g.ldc = some;
      }
      const bool narrow = p.narrows && c.cols < p.k;
      if (narrow) g.k = c.cols;
      c.run.k.gemm(g);
      if (narrow) settle_zeros(c, p, g);
    }
    dst += some * dst_row * item;
    r += some;
  }
}

}  // namespace dvm
