// Addresses of the Disassembly view. No editor API here.

/** The program's number and the instruction's index in an address of the Disassembly view. */
export function partsOf(address: string): { program: number; instruction: number } | undefined {
  const digits = /^0x([0-9a-f]{8})([0-9a-f]{8})$/i.exec(address);
  const instruction = digits ? parseInt(digits[2] ?? '', 16) - 0x80000000 : -1;
  return digits && instruction >= 0 ? { program: parseInt(digits[1] ?? '', 16), instruction } : undefined;
}
