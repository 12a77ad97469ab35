#include "core/codeobject/metadata.h"

#include <llvm/BinaryFormat/MsgPackReader.h>

#include "core/codeobject/code_object.h"
#include "core/codeobject/target_id.h"

namespace kerncap::codeobject {
namespace {

using support::ExitCode;
using support::fail;
using support::Json;

constexpr int deepest = 16;  // real notes nest five levels

// LLVM's MsgPack document builder assumes friendly map keys; its streaming reader does not, so the tree is built here.
Json read_value(llvm::msgpack::Reader& reader, std::string_view name, int depth) {
  using llvm::msgpack::Type;
  if (depth > deepest) fail(ExitCode::bad_input, "{}: the metadata note nests too deeply", name);
  llvm::msgpack::Object object;
  auto more = reader.read(object);
  if (!more) fail(ExitCode::bad_input, "{}: damaged metadata note: {}", name, llvm::toString(more.takeError()));
  if (!*more) fail(ExitCode::bad_input, "{}: the metadata note ends too early", name);
  switch (object.Kind) {
    case Type::Int:
      return object.Int;
    case Type::UInt:
      return object.UInt;
    case Type::Boolean:
      return object.Bool;
    case Type::Float:
      return object.Float;
    case Type::String:
      return object.Raw.str();
    case Type::Array: {
      Json array = Json::array();
      for (std::size_t i = 0; i < object.Length; ++i) array.push_back(read_value(reader, name, depth + 1));
      return array;
    }
    case Type::Map: {
      Json map = Json::object();
      for (std::size_t i = 0; i < object.Length; ++i) {
        Json key = read_value(reader, name, depth + 1);
        if (!key.is_string()) fail(ExitCode::bad_input, "{}: the metadata note has a key that is no string", name);
        map[key.get<std::string>()] = read_value(reader, name, depth + 1);
      }
      return map;
    }
    default:
      return nullptr;
  }
}

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::uint32_t number_of(const Json& object, const char* key, std::string_view name) {
  const auto found = object.find(key);
  if (found == object.end()) return 0;
  if (!found->is_number_integer() || found->get<std::int64_t>() < 0 || found->get<std::int64_t>() > UINT32_MAX)
    fail(ExitCode::bad_input, "{}: '{}' in the metadata note is not a sensible number", name, key);
  return found->get<std::uint32_t>();
}

bool flag_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

KernelArgument argument_from(const Json& entry, std::string_view name) {
  KernelArgument argument;
  argument.name = text_of(entry, ".name");
  argument.type_name = text_of(entry, ".type_name");
  argument.value_kind = text_of(entry, ".value_kind");
  argument.offset = number_of(entry, ".offset", name);
  argument.size = number_of(entry, ".size", name);
  argument.address_space = text_of(entry, ".address_space");
  argument.access = text_of(entry, ".actual_access");
  if (argument.access.empty()) argument.access = text_of(entry, ".access");
  argument.is_const = flag_of(entry, ".is_const");
  return argument;
}

struct NumberField {
  const char* key;
  std::uint32_t Kernel::*field;
};
constexpr NumberField number_fields[] = {
    {".kernarg_segment_size", &Kernel::kernarg_size},
    {".kernarg_segment_align", &Kernel::kernarg_alignment},
    {".group_segment_fixed_size", &Kernel::group_segment_size},
    {".private_segment_fixed_size", &Kernel::private_segment_size},
    {".sgpr_count", &Kernel::sgprs},
    {".vgpr_count", &Kernel::vgprs},
    {".agpr_count", &Kernel::agprs},
    {".sgpr_spill_count", &Kernel::sgpr_spills},
    {".vgpr_spill_count", &Kernel::vgpr_spills},
    {".wavefront_size", &Kernel::wavefront_size},
    {".max_flat_workgroup_size", &Kernel::max_flat_workgroup_size},
};

Kernel kernel_from(const Json& entry, std::string_view name) {
  Kernel kernel;
  kernel.name = text_of(entry, ".name");
  kernel.symbol = text_of(entry, ".symbol");
  if (kernel.name.empty() || kernel.symbol.empty())
    fail(ExitCode::bad_input, "{}: a kernel in the metadata note has no name", name);
  kernel.demangled = demangle(kernel.name);
  for (const auto& field : number_fields) kernel.*field.field = number_of(entry, field.key, name);
  kernel.uses_dynamic_stack = flag_of(entry, ".uses_dynamic_stack");
  if (const auto size = entry.find(".reqd_workgroup_size");
      size != entry.end() && size->is_array() && size->size() == 3)
    for (const auto& dimension : *size)
      kernel.required_workgroup_size.push_back(
          dimension.is_number_unsigned() || dimension.is_number_integer() ? dimension.get<std::uint32_t>() : 0);
  if (const auto arguments = entry.find(".args"); arguments != entry.end() && arguments->is_array())
    for (const auto& argument : *arguments) {
      if (!argument.is_object())
        fail(ExitCode::bad_input, "{}: a kernel argument in the metadata note is no map", name);
      kernel.arguments.push_back(argument_from(argument, name));
      const auto& last = kernel.arguments.back();
      if (std::uint64_t{last.offset} + last.size > kernel.kernarg_size)
        fail(ExitCode::bad_input, "{}: an argument of kernel {} lies outside its {} bytes of arguments", name,
             kernel.name, kernel.kernarg_size);
    }
  return kernel;
}

}  // namespace

Metadata read_metadata(std::span<const std::byte> note, std::string_view name) {
  llvm::msgpack::Reader reader(llvm::StringRef(reinterpret_cast<const char*>(note.data()), note.size()));
  const Json root = read_value(reader, name, 0);
  if (!root.is_object()) fail(ExitCode::bad_input, "{}: the metadata note is no map", name);
  Metadata metadata;
  if (const std::string target = text_of(root, "amdhsa.target"); !target.empty())
    metadata.target = target_of_entry(target);
  const auto kernels = root.find("amdhsa.kernels");
  if (kernels == root.end() || !kernels->is_array()) return metadata;
  for (const auto& kernel : *kernels) {
    if (!kernel.is_object()) fail(ExitCode::bad_input, "{}: a kernel in the metadata note is no map", name);
    metadata.kernels.push_back(kernel_from(kernel, name));
  }
  return metadata;
}

}  // namespace kerncap::codeobject
