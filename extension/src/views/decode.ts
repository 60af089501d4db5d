// Raw tensor bytes (base64, little-endian, contiguous) as numbers. No editor API here, so the webview uses it too.

type Reader = (view: DataView, at: number) => number;

const READERS: Record<string, [size: number, read: Reader]> = {
  float64: [8, (v, i) => v.getFloat64(i, true)],
  float32: [4, (v, i) => v.getFloat32(i, true)],
  float16: [2, (v, i) => half(v.getUint16(i, true))],
  bfloat16: [2, (v, i) => brain(v.getUint16(i, true))],
  int64: [8, (v, i) => Number(v.getBigInt64(i, true))],
  int32: [4, (v, i) => v.getInt32(i, true)],
  int16: [2, (v, i) => v.getInt16(i, true)],
  int8: [1, (v, i) => v.getInt8(i)],
  uint64: [8, (v, i) => Number(v.getBigUint64(i, true))],
  uint32: [4, (v, i) => v.getUint32(i, true)],
  uint16: [2, (v, i) => v.getUint16(i, true)],
  uint8: [1, (v, i) => v.getUint8(i)],
  bool: [1, (v, i) => (v.getUint8(i) ? 1 : 0)],
};

const LONG: Record<string, string> = {
  f64: 'float64',
  f32: 'float32',
  f16: 'float16',
  bf16: 'bfloat16',
  bool_: 'bool',
  i64: 'int64',
  i32: 'int32',
  i16: 'int16',
  i8: 'int8',
  u64: 'uint64',
  u32: 'uint32',
  u16: 'uint16',
  u8: 'uint8',
};

/** Numbers of a buffer; undefined for a dtype that is not known. Whole elements only: a cut-off last one is left out. */
export function decode(base64: string, dtype: string): Float64Array | undefined {
  const reader = READERS[LONG[dtype] ?? dtype];
  if (!reader) return undefined;
  const [size, read] = reader;
  const raw = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const view = new DataView(raw.buffer);
  return Float64Array.from({ length: Math.floor(raw.length / size) }, (_, i) => read(view, i * size));
}

/** IEEE 754 binary16. */
function half(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** The upper half of a float32. */
function brain(bits: number): number {
  const view = new DataView(new ArrayBuffer(4));
  view.setUint32(0, bits << 16);
  return view.getFloat32(0);
}
