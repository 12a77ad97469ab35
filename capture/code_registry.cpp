#include "capture/code_registry.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "core/support/error.h"
#include "core/support/hash.h"

namespace kerncap::capture {
namespace {

using support::ExitCode;
using support::fail;

template <typename T>
T info_of(hsa_loaded_code_object_t object, hsa_ven_amd_loader_loaded_code_object_info_t what) {
  T value{};
  runtime().loader.hsa_ven_amd_loader_loaded_code_object_get_info(object, what, &value);
  return value;
}

template <typename T>
T info_of(hsa_executable_symbol_t symbol, hsa_executable_symbol_info_t what) {
  T value{};
  runtime().core.hsa_executable_symbol_get_info_fn(symbol, what, &value);
  return value;
}

// "file:///a/b#offset=0x2000&size=3000" (hsa_ven_amd_loader.h): the numbers, 0 when they are not said.
std::uint64_t number_in_uri(const std::string& uri, std::string_view key) {
  const std::size_t range = uri.find_first_of("#?");
  if (range == std::string::npos) return 0;
  const std::size_t place = uri.find(std::string(key) + "=", range);
  if (place == std::string::npos) return 0;
  const char* begin = uri.c_str() + place + key.size() + 1;
  const bool hexadecimal = begin[0] == '0' && (begin[1] == 'x' || begin[1] == 'X');
  std::uint64_t value = 0;
  std::from_chars(begin + (hexadecimal ? 2 : 0), uri.c_str() + uri.size(), value, hexadecimal ? 16 : 10);
  return value;
}

LoadedCode describe_load(hsa_executable_t executable, hsa_loaded_code_object_t object) {
  LoadedCode load;
  load.executable = executable.handle;
  load.agent = info_of<hsa_agent_t>(object, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_AGENT).handle;
  load.base = info_of<std::uint64_t>(object, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_BASE);
  load.size = info_of<std::uint64_t>(object, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_SIZE);
  load.delta = info_of<std::int64_t>(object, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_DELTA);
  const auto storage =
      info_of<std::uint32_t>(object, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_TYPE);
  if (storage == HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_MEMORY) {
    load.memory =
        info_of<std::uint64_t>(object, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_BASE);
    load.memory_size =
        info_of<std::uint64_t>(object, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_SIZE);
  } else if (storage == HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_FILE) {
    const int theirs = info_of<int>(object, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_FILE);
    if (const int ours = ::fcntl(theirs, F_DUPFD_CLOEXEC, 3); ours >= 0)
      load.file = std::shared_ptr<const int>(new int(ours), [](const int* fd) {
        ::close(*fd);
        delete fd;
      });
    const auto length = info_of<std::uint32_t>(object, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI_LENGTH);
    std::string uri(std::size_t{length} + 1, '\0');
    runtime().loader.hsa_ven_amd_loader_loaded_code_object_get_info(
        object, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI, uri.data());
    load.file_offset = number_in_uri(uri, "offset");
    load.file_size = number_in_uri(uri, "size");
  }
  return load;
}

std::vector<std::byte> read_file_part(int fd, std::uint64_t offset, std::uint64_t size) {
  if (size == 0) {
    const off_t end = ::lseek(fd, 0, SEEK_END);
    if (end < 0 || static_cast<std::uint64_t>(end) < offset) return {};
    size = static_cast<std::uint64_t>(end) - offset;
  }
  std::vector<std::byte> bytes(size);
  for (std::uint64_t done = 0; done < size;) {
    const ssize_t got = ::pread(fd, bytes.data() + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail(ExitCode::environment, "cannot read a loaded code object from its file");
    done += static_cast<std::uint64_t>(got);
  }
  return bytes;
}

}  // namespace

void CodeRegistry::loaded(hsa_executable_t executable) {
  if (!ask_for_loader()) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = "the HSA runtime has no loader extension, so loaded code objects cannot be found";
    return;
  }
  std::vector<LoadedCode> fresh;
  const auto each = [](hsa_executable_t e, hsa_loaded_code_object_t object, void* data) {
    static_cast<std::vector<LoadedCode>*>(data)->push_back(describe_load(e, object));
    return HSA_STATUS_SUCCESS;
  };
  runtime().loader.hsa_ven_amd_loader_executable_iterate_loaded_code_objects(executable, each, &fresh);
  std::vector<std::uint64_t> agents;
  {
    const std::lock_guard lock(mutex_);
    for (LoadedCode& load : fresh) {
      if (load.agent != 0 && std::find(agents.begin(), agents.end(), load.agent) == agents.end())
        agents.push_back(load.agent);
      loads_.push_back(std::move(load));
    }
  }
  for (const std::uint64_t agent : agents) add_symbols(executable, hsa_agent_t{agent});
}

void CodeRegistry::add_symbols(hsa_executable_t executable, hsa_agent_t agent) {
  struct Found {
    std::string name;
    KernelObject object;
  };
  std::vector<Found> found;
  const auto each = [](hsa_executable_t e, hsa_agent_t a, hsa_executable_symbol_t symbol, void* data) {
    if (info_of<hsa_symbol_kind_t>(symbol, HSA_EXECUTABLE_SYMBOL_INFO_TYPE) != HSA_SYMBOL_KIND_KERNEL)
      return HSA_STATUS_SUCCESS;
    Found f;
    f.name.resize(info_of<std::uint32_t>(symbol, HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH));
    runtime().core.hsa_executable_symbol_get_info_fn(symbol, HSA_EXECUTABLE_SYMBOL_INFO_NAME, f.name.data());
    f.object.kernel_object = info_of<std::uint64_t>(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT);
    f.object.kernarg_size = info_of<std::uint32_t>(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE);
    f.object.group_segment_size = info_of<std::uint32_t>(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE);
    f.object.private_segment_size =
        info_of<std::uint32_t>(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE);
    f.object.agent = a.handle;
    f.object.executable = e.handle;
    static_cast<std::vector<Found>*>(data)->push_back(std::move(f));
    return HSA_STATUS_SUCCESS;
  };
  runtime().core.hsa_executable_iterate_agent_symbols_fn(executable, agent, each, &found);
  for (Found& f : found) {
    if (f.object.kernel_object == 0) continue;
    {
      const std::lock_guard lock(mutex_);
      f.object.record = &record(f.name);
    }
    f.object.wanted = f.object.record->matches && in_wanted_code(f.object.kernel_object);
    const std::lock_guard lock(mutex_);
    f.object.launches = &launches_.emplace_back(0);
    objects_.push_back(f.object);
    by_object_[f.object.kernel_object] = &objects_.back();
  }
}

bool CodeRegistry::in_wanted_code(std::uint64_t kernel_object) {
  if (code_object_.empty()) return true;
  for (const LoadedCode& load : loads()) {
    if (kernel_object - load.base >= load.size) continue;
    try {
      return digest(load).starts_with(code_object_);
    } catch (const std::exception&) {
      return false;  // no bytes, no digest: then it is not the one that was named
    }
  }
  return false;
}

KernelRecord& CodeRegistry::record(const std::string& symbol) {
  const auto [found, fresh] = by_symbol_.try_emplace(symbol, nullptr);
  if (!fresh) return *found->second;
  KernelRecord& r = records_.emplace_back();
  r.symbol = symbol;
  r.number = static_cast<std::uint32_t>(records_.size() - 1);
  found->second = &r;
  try {
    namer_(r);
  } catch (const std::exception& error) {
    if (failure_.empty()) failure_ = error.what();
  }
  return r;
}

void CodeRegistry::unloading(hsa_executable_t executable) {
  const std::lock_guard lock(mutex_);
  std::erase_if(by_object_, [&](const auto& item) { return item.second->executable == executable.handle; });
  std::erase_if(loads_, [&](const LoadedCode& load) { return load.executable == executable.handle; });
  generation_.fetch_add(1, std::memory_order_acq_rel);
}

void CodeRegistry::forget_loaded() {
  const std::lock_guard lock(mutex_);
  by_object_.clear();
  loads_.clear();
  memory_readers_.clear();
  generation_.fetch_add(1, std::memory_order_acq_rel);
}

void CodeRegistry::memory_reader(hsa_code_object_reader_t reader, const void* bytes) {
  const std::lock_guard lock(mutex_);
  memory_readers_[reader.handle] = reinterpret_cast<std::uint64_t>(bytes);
}

void CodeRegistry::reader_gone(hsa_code_object_reader_t reader) {
  const std::lock_guard lock(mutex_);
  const auto found = memory_readers_.find(reader.handle);
  if (found == memory_readers_.end()) return;
  std::shared_ptr<const std::vector<std::byte>> copy;
  for (LoadedCode& load : loads_) {
    if (load.memory != found->second || load.kept) continue;
    if (!copy) {
      const auto* begin = reinterpret_cast<const std::byte*>(load.memory);
      copy = std::make_shared<const std::vector<std::byte>>(begin, begin + load.memory_size);
    }
    load.kept = copy;
  }
  memory_readers_.erase(found);
}

const KernelObject* CodeRegistry::find(std::uint64_t kernel_object) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_object_.find(kernel_object);
  return found == by_object_.end() ? nullptr : found->second;
}

std::vector<LoadedCode> CodeRegistry::loads() const {
  const std::lock_guard lock(mutex_);
  return loads_;
}

std::vector<const KernelRecord*> CodeRegistry::records() const {
  const std::lock_guard lock(mutex_);
  std::vector<const KernelRecord*> out;
  for (const KernelRecord& r : records_) out.push_back(&r);
  return out;
}

std::vector<CodeRegistry::Launched> CodeRegistry::launched(const KernelRecord& record) {
  std::vector<const KernelObject*> objects;
  {
    const std::lock_guard lock(mutex_);
    for (const KernelObject& object : objects_)
      if (object.record == &record && object.wanted && object.launches->load(std::memory_order_relaxed) > 0)
        objects.push_back(&object);
  }
  std::vector<Launched> out;
  for (const KernelObject* object : objects) {
    const std::uint64_t dispatches = object->launches->load(std::memory_order_relaxed);
    const std::string digest = objects.size() > 1 ? launched_digest(*object) : std::string();
    const auto same = std::find_if(out.begin(), out.end(), [&](const Launched& l) { return l.digest == digest; });
    if (same != out.end()) {
      same->dispatches += dispatches;
    } else {
      out.push_back({digest, dispatches});
    }
  }
  return out;
}

std::string CodeRegistry::launched_digest(const KernelObject& object) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = launched_digests_.find(&object); known != launched_digests_.end()) return known->second;
  }
  for (const LoadedCode& load : loads()) {
    if (load.executable != object.executable || object.kernel_object - load.base >= load.size) continue;
    try {
      std::string found = digest(load);
      const std::lock_guard lock(mutex_);
      return launched_digests_[&object] = std::move(found);
    } catch (const std::exception&) {
      return {};
    }
  }
  return {};
}

std::string CodeRegistry::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::vector<std::byte> CodeRegistry::bytes(const LoadedCode& load) const {
  if (load.kept) return *load.kept;
  if (load.memory != 0) {
    const auto* begin = reinterpret_cast<const std::byte*>(load.memory);
    return {begin, begin + load.memory_size};
  }
  if (load.file) return read_file_part(*load.file, load.file_offset, load.file_size);
  fail(ExitCode::environment, "the code object loaded at {:#x} came from neither memory nor a file", load.base);
}

std::string CodeRegistry::digest(const LoadedCode& load) {
  if (!load.digest.empty()) return load.digest;
  std::string digest = support::sha256_hex(bytes(load));
  const std::lock_guard lock(mutex_);
  for (LoadedCode& known : loads_)
    if (known.base == load.base && known.executable == load.executable) known.digest = digest;
  return digest;
}

}  // namespace kerncap::capture
