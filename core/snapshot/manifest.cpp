#include "core/snapshot/manifest.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "core/snapshot/layout.h"
#include "core/support/error.h"
#include "core/support/file.h"
#include "core/support/hash.h"

namespace kerncap::snapshot {
namespace {

using support::Error;
using support::ExitCode;
using support::fail;
using support::hex_string;
using support::Json;

constexpr std::pair<RegionKind, const char*> kind_names[] = {
    {RegionKind::device_coarse, "device_coarse"},
    {RegionKind::device_fine, "device_fine"},
    {RegionKind::device_extended, "device_extended"},
    {RegionKind::host_coarse, "host_coarse"},
    {RegionKind::host_fine, "host_fine"},
    {RegionKind::host_kernarg, "host_kernarg"},
    {RegionKind::registered, "registered"},
    {RegionKind::managed, "managed"},
    {RegionKind::vmem, "vmem"},
    {RegionKind::ipc, "ipc"},
    {RegionKind::code_object, "code_object"},
};

constexpr std::pair<Scope, const char*> scope_names[] = {
    {Scope::everything, "everything"},
    {Scope::reachable, "reachable"},
};

// ---- writing ----------------------------------------------------------------------------------------------------

template <typename Container, typename Function>
Json list(const Container& values, Function&& one) {
  Json out = Json::array();
  for (const auto& value : values) out.push_back(one(value));
  return out;
}

Json write(const Agent& a) {
  return {{"index", a.index},
          {"name", a.name},
          {"isa", a.isa},
          {"product", a.product},
          {"compute_units", a.compute_units},
          {"wavefront_size", a.wavefront_size},
          {"xccs", a.xccs},
          {"memory_bytes", a.memory_bytes},
          {"node", a.node}};
}

Json write(const Region& r) {
  Json out = {{"address", hex_string(r.address)}, {"size", r.size},
              {"kind", to_string(r.kind)},        {"agent", r.agent},
              {"pool_flags", r.pool_flags},       {"allocation_flags", r.allocation_flags}};
  if (r.host_address != 0) out["host_address"] = hex_string(r.host_address);
  if (!r.code_object.empty()) out["code_object"] = r.code_object;
  return out;
}

Json write(const CodeObjectLoad& l) {
  return {{"digest", l.digest},
          {"agent", l.agent},
          {"load_base", hex_string(l.load_base)},
          {"load_size", l.load_size},
          {"load_delta", l.load_delta}};
}

Json write(const CodePointer& p) {
  return {{"address", hex_string(p.address)},
          {"code_object", p.code_object},
          {"offset", hex_string(p.offset)},
          {"symbol", p.symbol}};
}

Json write(const codeobject::KernelArgument& a) {
  return {{"name", a.name}, {"type_name", a.type_name},         {"value_kind", a.value_kind}, {"offset", a.offset},
          {"size", a.size}, {"address_space", a.address_space}, {"access", a.access},         {"is_const", a.is_const}};
}

Json write(const codeobject::Kernel& k) {
  return {{"name", k.name},
          {"symbol", k.symbol},
          {"demangled", k.demangled},
          {"kernarg_size", k.kernarg_size},
          {"kernarg_alignment", k.kernarg_alignment},
          {"group_segment_size", k.group_segment_size},
          {"private_segment_size", k.private_segment_size},
          {"sgprs", k.sgprs},
          {"vgprs", k.vgprs},
          {"agprs", k.agprs},
          {"sgpr_spills", k.sgpr_spills},
          {"vgpr_spills", k.vgpr_spills},
          {"wavefront_size", k.wavefront_size},
          {"max_flat_workgroup_size", k.max_flat_workgroup_size},
          {"uses_dynamic_stack", k.uses_dynamic_stack},
          {"required_workgroup_size", k.required_workgroup_size},
          {"arguments", list(k.arguments, [](const auto& a) { return write(a); })}};
}

Json write(const Dispatch& d) {
  Json out;
  out["kernel_symbol"] = d.kernel_symbol;
  out["kernel_demangled"] = d.kernel_demangled;
  out["code_object"] = d.code_object;
  out["index"] = d.index;
  out["kernel_index"] = d.kernel_index;
  out["process"] = d.process;
  out["command_line"] = d.command_line;
  out["agent"] = d.agent;
  out["queue_type"] = d.queue_type;
  out["packet"] = {{"header", d.header},
                   {"setup", d.setup},
                   {"grid", d.grid},
                   {"workgroup", d.workgroup},
                   {"private_segment_size", d.private_segment_size},
                   {"group_segment_size", d.group_segment_size},
                   {"kernel_object", hex_string(d.kernel_object)},
                   {"kernarg_address", hex_string(d.kernarg_address)}};
  out["device_time_ns"] = d.device_time ? Json(*d.device_time) : Json(nullptr);
  out["kernel"] = write(d.kernel);
  out["kernarg_file"] = d.kernarg_file;
  out["kernarg_checksum"] = d.kernarg_checksum;
  out["pages_file"] = d.pages_file;
  out["has_after"] = d.has_after;
  out["incomplete_reason"] = d.incomplete_reason;
  out["scope"] = to_string(d.scope);
  out["visible_bytes"] = d.visible_bytes;
  out["coverage"] = list(d.coverage, [](const auto& c) {
    return Json{{"kind", c.kind}, {"regions", c.regions}, {"bytes", c.bytes}};
  });
  out["not_captured"] = list(d.not_captured, [](const auto& n) {
    return Json{{"address", hex_string(n.address)}, {"size", n.size}, {"kind", n.kind}, {"reason", n.reason}};
  });
  out["regions"] = list(d.regions, [](const auto& r) { return write(r); });
  out["loads"] = list(d.loads, [](const auto& l) { return write(l); });
  out["code_pointers_complete"] = d.code_pointers_complete;
  out["code_pointers"] = list(d.code_pointers, [](const auto& p) { return write(p); });
  return out;
}

std::string hex(support::Hash128 hash) { return fmt::format("{:016x}{:016x}", hash.high, hash.low); }

// ---- reading: nothing in the document is believed ----------------------------------------------------------------

class Object {
 public:
  Object(const Json& json, std::string what) : json_(json), what_(std::move(what)) {
    if (!json_.is_object()) fail(ExitCode::bad_input, "{}: is not an object", what_);
  }

  std::string text(const char* key) const { return support::string_member(json_, key, what_); }
  bool flag(const char* key) const { return support::bool_member(json_, key, what_); }

  template <typename T>
  T number(const char* key) const {
    const std::uint64_t value = support::unsigned_member(json_, key, what_);
    if (value > std::numeric_limits<T>::max())
      fail(ExitCode::bad_input, "{}: '{}' is too large ({})", what_, key, value);
    return static_cast<T>(value);
  }

  std::int64_t signed_number(const char* key) const {
    const Json& value = support::member(json_, key, what_);
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
      fail(ExitCode::bad_input, "{}: '{}' is too large", what_, key);
    if (!value.is_number_integer()) fail(ExitCode::bad_input, "{}: '{}' is not a whole number", what_, key);
    return value.get<std::int64_t>();
  }

  std::uint64_t address(const char* key) const {
    const std::uint64_t value = number<std::uint64_t>(key);
    if (value >= layout::address_limit) fail(ExitCode::bad_input, "{}: '{}' is no address ({:#x})", what_, key, value);
    return value;
  }

  std::uint64_t size(const char* key) const {
    const std::uint64_t value = number<std::uint64_t>(key);
    if (value >= layout::address_limit) fail(ExitCode::bad_input, "{}: '{}' is no size ({})", what_, key, value);
    return value;
  }

  // An index into Manifest::agents; -1 (the host) where `host` allows it.
  std::int32_t agent(const char* key, std::size_t agents, bool host) const {
    const std::int64_t value = signed_number(key);
    if (value < (host ? -1 : 0) || value >= static_cast<std::int64_t>(agents))
      fail(ExitCode::bad_input, "{}: '{}' names agent {} of {}", what_, key, value, agents);
    return static_cast<std::int32_t>(value);
  }

  std::string digest(const char* key) const {
    std::string value = text(key);
    if (value.size() != 64 || value.find_first_not_of("0123456789abcdef") != std::string::npos)
      fail(ExitCode::bad_input, "{}: '{}' is not a SHA-256 digest", what_, key);
    return value;
  }

  std::string path(const char* key) const {
    std::string value = text(key);
    if (!support::is_safe_relative_path(value))
      fail(ExitCode::bad_input, "{}: '{}' leaves the snapshot's folder ('{}')", what_, key, value);
    return value;
  }

  Object object(const char* key) const {
    return Object(support::member(json_, key, what_), fmt::format("{}.{}", what_, key));
  }
  const Json& value(const char* key) const { return support::member(json_, key, what_); }
  bool has(const char* key) const { return json_.contains(key); }
  const std::string& what() const { return what_; }

  template <typename Function>
  auto each(const char* key, Function&& one) const {
    std::vector<decltype(one(std::declval<Object>()))> out;
    const Json& array = support::array_member(json_, key, what_);
    out.reserve(array.size());
    for (std::size_t i = 0; i < array.size(); ++i)
      out.push_back(one(Object(array[i], fmt::format("{}.{}[{}]", what_, key, i))));
    return out;
  }

  std::vector<std::uint32_t> numbers(const char* key) const {
    std::vector<std::uint32_t> out;
    for (const Json& item : support::array_member(json_, key, what_)) {
      if (!item.is_number_unsigned() || item.get<std::uint64_t>() > UINT32_MAX)
        fail(ExitCode::bad_input, "{}: '{}' holds something that is not a 32-bit number", what_, key);
      out.push_back(item.get<std::uint32_t>());
    }
    return out;
  }

  std::array<std::uint32_t, 3> three(const char* key) const {
    const auto values = numbers(key);
    if (values.size() != 3)
      fail(ExitCode::bad_input, "{}: '{}' has {} numbers instead of 3", what_, key, values.size());
    return {values[0], values[1], values[2]};
  }

  std::vector<std::string> texts(const char* key) const {
    std::vector<std::string> out;
    for (const Json& item : support::array_member(json_, key, what_)) {
      if (!item.is_string()) fail(ExitCode::bad_input, "{}: '{}' holds something that is not text", what_, key);
      out.push_back(item.get<std::string>());
    }
    return out;
  }

 private:
  const Json& json_;
  std::string what_;
};

Agent read_agent(const Object& o) {
  Agent a;
  a.index = o.number<std::uint32_t>("index");
  a.name = o.text("name");
  a.isa = o.text("isa");
  a.product = o.text("product");
  a.compute_units = o.number<std::uint32_t>("compute_units");
  a.wavefront_size = o.number<std::uint32_t>("wavefront_size");
  a.xccs = o.number<std::uint32_t>("xccs");
  a.memory_bytes = o.number<std::uint64_t>("memory_bytes");
  a.node = o.number<std::uint32_t>("node");
  return a;
}

Region read_region(const Object& o, std::size_t agents) {
  Region r;
  r.address = o.address("address");
  r.size = o.size("size");
  const std::string kind = o.text("kind");
  if (const auto known = region_kind(kind)) {
    r.kind = *known;
  } else {
    fail(ExitCode::bad_input, "{}: unknown kind of memory '{}'", o.what(), kind);
  }
  r.agent = o.agent("agent", agents, true);
  r.pool_flags = o.number<std::uint32_t>("pool_flags");
  r.allocation_flags = o.number<std::uint32_t>("allocation_flags");
  if (o.has("host_address")) r.host_address = o.address("host_address");
  if (o.has("code_object")) r.code_object = o.digest("code_object");
  return r;
}

CodeObjectLoad read_load(const Object& o, std::size_t agents) {
  CodeObjectLoad l;
  l.digest = o.digest("digest");
  l.agent = o.agent("agent", agents, false);
  l.load_base = o.address("load_base");
  l.load_size = o.size("load_size");
  l.load_delta = o.signed_number("load_delta");
  return l;
}

CodePointer read_code_pointer(const Object& o) {
  CodePointer p;
  p.address = o.address("address");
  p.code_object = o.digest("code_object");
  p.offset = o.number<std::uint64_t>("offset");
  p.symbol = o.text("symbol");
  return p;
}

codeobject::Kernel read_kernel(const Object& o) {
  codeobject::Kernel k;
  k.name = o.text("name");
  k.symbol = o.text("symbol");
  k.demangled = o.text("demangled");
  const std::pair<const char*, std::uint32_t*> numbers[] = {
      {"kernarg_size", &k.kernarg_size},
      {"kernarg_alignment", &k.kernarg_alignment},
      {"group_segment_size", &k.group_segment_size},
      {"private_segment_size", &k.private_segment_size},
      {"sgprs", &k.sgprs},
      {"vgprs", &k.vgprs},
      {"agprs", &k.agprs},
      {"sgpr_spills", &k.sgpr_spills},
      {"vgpr_spills", &k.vgpr_spills},
      {"wavefront_size", &k.wavefront_size},
      {"max_flat_workgroup_size", &k.max_flat_workgroup_size},
  };
  for (const auto& [key, target] : numbers) *target = o.number<std::uint32_t>(key);
  k.uses_dynamic_stack = o.flag("uses_dynamic_stack");
  k.required_workgroup_size = o.numbers("required_workgroup_size");
  if (!k.required_workgroup_size.empty() && k.required_workgroup_size.size() != 3)
    fail(ExitCode::bad_input, "{}: 'required_workgroup_size' has {} numbers", o.what(),
         k.required_workgroup_size.size());
  k.arguments = o.each("arguments", [&](const Object& item) {
    codeobject::KernelArgument a;
    a.name = item.text("name");
    a.type_name = item.text("type_name");
    a.value_kind = item.text("value_kind");
    a.offset = item.number<std::uint32_t>("offset");
    a.size = item.number<std::uint32_t>("size");
    a.address_space = item.text("address_space");
    a.access = item.text("access");
    a.is_const = item.flag("is_const");
    return a;
  });
  return k;
}

void check_regions(const std::vector<Region>& regions, const std::string& what) {
  std::uint64_t end = 0;
  for (const Region& r : regions) {
    if (r.size == 0) fail(ExitCode::bad_input, "{}: the region at {:#x} is empty", what, r.address);
    if (r.address < end)
      fail(ExitCode::bad_input, "{}: the region at {:#x} overlaps or precedes the one before it", what, r.address);
    end = r.address + r.size;  // both below 2^57
  }
}

Dispatch read_dispatch(const Object& o, std::size_t agents, unsigned version) {
  Dispatch d;
  d.kernel_symbol = o.text("kernel_symbol");
  d.kernel_demangled = o.text("kernel_demangled");
  d.code_object = o.digest("code_object");
  d.index = o.number<std::uint64_t>("index");
  d.kernel_index = o.number<std::uint64_t>("kernel_index");
  d.process = o.number<std::uint64_t>("process");
  d.command_line = o.texts("command_line");
  d.agent = o.agent("agent", agents, false);
  d.queue_type = o.text("queue_type");
  const Object packet = o.object("packet");
  d.header = packet.number<std::uint16_t>("header");
  d.setup = packet.number<std::uint16_t>("setup");
  d.grid = packet.three("grid");
  d.workgroup = packet.three("workgroup");
  d.private_segment_size = packet.number<std::uint32_t>("private_segment_size");
  d.group_segment_size = packet.number<std::uint32_t>("group_segment_size");
  d.kernel_object = packet.address("kernel_object");
  d.kernarg_address = packet.address("kernarg_address");
  if (!o.value("device_time_ns").is_null()) d.device_time = o.number<std::uint64_t>("device_time_ns");
  d.kernel = read_kernel(o.object("kernel"));
  d.kernarg_file = o.path("kernarg_file");
  d.kernarg_checksum = o.text("kernarg_checksum");
  d.pages_file = o.path("pages_file");
  d.has_after = o.flag("has_after");
  d.incomplete_reason = o.text("incomplete_reason");
  d.coverage = o.each("coverage", [](const Object& item) {
    return CoverageKind{item.text("kind"), item.number<std::uint64_t>("regions"), item.number<std::uint64_t>("bytes")};
  });
  d.not_captured = o.each("not_captured", [](const Object& item) {
    return NotCaptured{item.number<std::uint64_t>("address"), item.number<std::uint64_t>("size"), item.text("kind"),
                       item.text("reason")};
  });
  d.regions = o.each("regions", [&](const Object& item) { return read_region(item, agents); });
  check_regions(d.regions, o.what());
  if (version >= 2) {
    const std::string scope = o.text("scope");
    const auto* const known = std::find_if(std::begin(scope_names), std::end(scope_names),
                                           [&](const auto& entry) { return scope == entry.second; });
    if (known == std::end(scope_names)) fail(ExitCode::bad_input, "{}: unknown scope '{}'", o.what(), scope);
    d.scope = known->first;
    d.visible_bytes = o.number<std::uint64_t>("visible_bytes");
  } else {
    for (const Region& region : d.regions) d.visible_bytes += region.size;
  }
  d.loads = o.each("loads", [&](const Object& item) { return read_load(item, agents); });
  d.code_pointers_complete = o.flag("code_pointers_complete");
  d.code_pointers = o.each("code_pointers", [](const Object& item) { return read_code_pointer(item); });
  return d;
}

// The version of a document that this Kerncap reads: 1 or 2.
unsigned checked_version(const std::string& found, std::string_view what) {
  if (found == schema) return 2;
  if (found == "kerncap.snapshot/1") return 1;
  if (found.starts_with("kerncap.snapshot/"))
    fail(ExitCode::bad_input,
         "{}: the snapshot's format is '{}' and this Kerncap reads up to '{}'; use a newer Kerncap", what, found,
         schema);
  fail(ExitCode::bad_input, "{}: is not a Kerncap snapshot (schema '{}')", what, found);
}

}  // namespace

const char* to_string(RegionKind kind) {
  for (const auto& [value, name] : kind_names)
    if (value == kind) return name;
  return "unknown";
}

const char* to_string(Scope scope) {
  for (const auto& [value, name] : scope_names)
    if (value == scope) return name;
  return "unknown";
}

std::optional<RegionKind> region_kind(std::string_view name) {
  for (const auto& [value, known] : kind_names)
    if (name == known) return value;
  return std::nullopt;
}

std::string manifest_checksum(const support::Json& document) {
  // Compact, so that white space does not matter.
  return hex(support::xxh3_128(support::bytes_of(document.dump(-1, ' ', false, Json::error_handler_t::replace))));
}

support::Json to_json(const Manifest& m) {
  Json out;
  out["schema"] = schema;
  out["backend"] = m.backend;
  out["kerncap_version"] = m.kerncap_version;
  out["runtime_version"] = m.runtime_version;
  out["chunk_size"] = chunk_size;
  out["agents"] = list(m.agents, [](const auto& a) { return write(a); });
  out["dispatches"] = list(m.dispatches, [](const auto& d) { return write(d); });
  out["chunk_files"] = m.chunk_files;
  return out;
}

Manifest manifest_from_json(const support::Json& document, std::string_view what) {
  const Object o(document, std::string(what));
  const unsigned version = checked_version(o.text("schema"), what);
  Manifest m;
  m.backend = o.text("backend");
  m.kerncap_version = o.text("kerncap_version");
  m.runtime_version = o.text("runtime_version");
  if (const auto size = o.number<std::uint64_t>("chunk_size"); size != chunk_size)
    fail(ExitCode::bad_input, "{}: 'chunk_size' is {} instead of {}", what, size, chunk_size);
  m.agents = o.each("agents", read_agent);
  for (std::size_t i = 0; i < m.agents.size(); ++i)
    if (m.agents[i].index != i)
      fail(ExitCode::bad_input, "{}: agent {} says that its index is {}", what, i, m.agents[i].index);
  m.dispatches =
      o.each("dispatches", [&](const Object& item) { return read_dispatch(item, m.agents.size(), version); });
  m.chunk_files = o.texts("chunk_files");
  for (const std::string& name : m.chunk_files)
    if (!support::is_safe_relative_path(name))
      fail(ExitCode::bad_input, "{}: 'chunk_files' leaves the snapshot's folder ('{}')", what, name);
  return m;
}

}  // namespace kerncap::snapshot
