// The decoded form of an instruction, and the table of what instructions mean.
//
// Decoding turns machine code into an Operation once per program counter; executing one is a call through `execute`,
// which returns the operation that comes next. Vector registers are rows of 64 lanes of 32 bits, and wider values are
// consecutive rows; constants are stored as rows too, so that most vector instructions are one loop over rows.
#pragma once

#include <array>
#include <atomic>
#include <span>
#include <string>
#include <string_view>

#include "softgpu/isa/scalar_types.h"

namespace kerncap::softgpu::isa {

struct Wave;
struct Operation;
struct Instruction;

inline constexpr unsigned row_lanes = 64;            // lanes of a row, whatever the wave size
inline constexpr unsigned max_lane_registers = 512;  // 256 VGPRs, then 256 AGPRs
inline constexpr unsigned accumulator_base = 256;
inline constexpr unsigned spare_row = max_lane_registers;  // of no instruction; dual issue keeps a result there

// Indices into Wave::s: the hardware's encodings where there is one.
enum ScalarRegister : u16 {
  reg_vcc = 106,
  reg_ttmp0 = 108,
  reg_m0 = 124,
  reg_exec = 126,
  reg_flat_scratch = 128,
  reg_xnack_mask = 130,
  reg_discard = 132,  // writes to `null` go here; reads of `null` are the constant 0
  scalar_registers = 136
};

enum class OperandKind : u8 { none, vector, scalar, constant, scc, vccz, execz };

struct Operand {
  OperandKind kind = OperandKind::none;
  u8 dwords = 1;
  u16 index = 0;  // row of a vector operand, index of a scalar one
  u32 unused = 0;
  union {
    u64 value = 0;   // constants of scalar instructions
    const u32* row;  // constants of vector instructions: one row for each dword
  };
};

// How a source or result is read as a number: what an inline constant such as 1.0 means, and where its sign is.
enum class Type : u8 {
  none,
  u32_,
  i32_,
  f32_,
  b32_,
  u64_,
  i64_,
  f64_,
  b64_,
  u16_,
  i16_,
  f16_,
  pk_f16,
  pk_i16,
  pk_f32,
  bf16_,
  mask,
  wide
};

// SDWA, DPP, operand modifiers: absent (nullptr) in most operations.
enum class Select : u8 { dword, byte_0, byte_1, byte_2, byte_3, word_0, word_1 };
enum class Unused : u8 { pad, sign_extend, preserve };
struct Modifiers {
  u8 negate = 0, absolute = 0, sign_extend = 0;  // bit per source
  u8 op_sel = 0, op_sel_hi = 0xff, neg_lo = 0, neg_hi = 0;
  bool clamp = false;
  i8 output_scale = 0;  // mul:2 -> 1, mul:4 -> 2, div:2 -> -1
  std::array<Select, 4> source_select{};
  Select destination_select = Select::dword;
  Unused unused = Unused::pad;
  bool sdwa = false, has_op_sel = false;
  bool dpp = false, dpp_fetch_inactive = false, bound_control = false;
  u8 row_mask = 15, bank_mask = 15;
  std::array<i8, row_lanes> lane{};  // DPP: the lane that lane i reads, -1: invalid
  u8 cbsz = 0, abid = 0, blgp = 0;   // MFMA
};

using Execute = const Operation* (*)(Wave&, const Operation*);
// Computes rows: destination, sources, lanes (32 or 64).
using RowFunction = void (*)(u32*, const u32* const*, unsigned);

struct Operation {
  std::atomic<Execute> execute{nullptr};
  const Instruction* instruction = nullptr;
  RowFunction rows = nullptr;
  const Modifiers* modifiers = nullptr;
  const Operation* parts = nullptr;  // the two halves of a dual-issue instruction (RDNA3)
  u8 dwords = 0;                     // length of the encoding
  u8 destination_dwords = 1;
  u8 source_count = 0;
  u8 flags = 0;
  u32 immediate = 0;  // offsets, branch distances, hwreg fields, ...
  Operand destination, destination2;
  std::array<Operand, 4> source;
};

enum OperationFlag : u8 {
  flag_glc = 1,  // atomics return the old value (glc, sc0)
  flag_offen = 2,
  flag_idxen = 4,
  flag_gds = 8,
  flag_preserve_high = 16,  // a 16-bit result leaves the upper half as it was
  flag_lds = 32,            // buffer/global load to LDS
  flag_tfe = 64,
};

enum class Family : u8 { valu, vcmp, special_valu, mfma, salu, sopp, smem, lds, vmem };

// Attributes of an instruction that drivers need.
enum InstructionFlag : u16 {
  instruction_f32_mode = 1,    // rounding and denormals from MODE's single-precision fields
  instruction_f64_mode = 2,    // ... from its half/double-precision fields
  instruction_keeps_high = 4,  // 16-bit result that leaves the upper half on gfx9 too
  instruction_reads_destination = 8,
  instruction_terminator = 16,
  instruction_branch = 32,
  instruction_writes_exec = 64,
  instruction_packed = 128,          // op_sel and op_sel_hi are VOP3P's
  instruction_signed_k = 256,        // SOPK: the 16-bit immediate is sign-extended
  instruction_mix = 512,             // fma_mix: op_sel chooses the format
  instruction_adds_lane = 1024,      // memory: the address grows by four bytes for each lane
  instruction_global_sync = 2048,    // ds_gws_*
  instruction_own_modifiers = 4096,  // the execute function knows what clamp, op_sel, neg_lo mean
};

// One row of the semantic tables.
struct Instruction {
  const char* name = nullptr;  // without encoding suffix
  Family family = Family::valu;
  Execute execute = nullptr;  // nullptr: the family's driver with `rows`
  RowFunction rows = nullptr;
  std::array<Type, 2> result{};  // vdst/sdst; the second for carries and scale flags
  std::array<Type, 4> sources{};
  u16 flags = 0;
  u8 bytes = 0;                  // memory: bytes of one element per lane
  const void* detail = nullptr;  // family specific
};

// The tables of each file.
std::span<const Instruction> integer_instructions();
std::span<const Instruction> float_instructions();
std::span<const Instruction> convert_instructions();
std::span<const Instruction> half_instructions();
std::span<const Instruction> packed_instructions();
std::span<const Instruction> compare_instructions();
std::span<const Instruction> special_vector_instructions();
std::span<const Instruction> matrix_instructions();
std::span<const Instruction> wave_matrix_instructions();
std::span<const Instruction> sparse_matrix_instructions();
std::span<const Instruction> small_float_instructions();
std::span<const Instruction> scalar_instructions();
std::span<const Instruction> scalar_mask_instructions();  // EXEC, bit counting, SOP1's moves
std::span<const Instruction> program_instructions();
std::span<const Instruction> scalar_memory_instructions();
std::span<const Instruction> lds_instructions();
std::span<const Instruction> global_sync_instructions();
std::span<const Instruction> typed_buffer_instructions();
std::span<const Instruction> memory_instructions();  // keyed without flat_, global_, scratch_, buffer_

// By name without encoding suffix; nullptr when there are no semantics.
const Instruction* find_instruction(std::string_view name);
// Other spellings of the same instruction (RDNA names), as pairs.
std::span<const std::pair<const char*, const char*>> instruction_aliases();

}  // namespace kerncap::softgpu::isa
