// kerncap doctor: what works on this machine, and what to do about what doesn't.
#include <dlfcn.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "cli/companions.h"
#include "cli/program.h"
#include "cli/table.h"
#include "core/compdb/database.h"
#include "core/support/json.h"
#include "core/support/process.h"

namespace kerncap::cli {
namespace {

namespace fs = std::filesystem;
using support::dump_json;
using support::ExitCode;
using support::Json;

enum class Verdict { ok, warning, missing };
const char* to_string(Verdict verdict) {
  static constexpr const char* names[] = {"ok", "warning", "missing"};
  return names[static_cast<int>(verdict)];
}

struct Finding {
  std::string subject;
  Verdict verdict = Verdict::ok;
  std::string found, advice;
};

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

Finding devices() {
  if (!is_there("/dev/kfd")) {
    return {"AMD GPU", Verdict::warning, "no /dev/kfd",
            "pass --softgpu to use the software GPU, or install the amdgpu driver"};
  }
  if (::access("/dev/kfd", R_OK | W_OK) != 0) {
    return {"AMD GPU", Verdict::missing, "/dev/kfd is not accessible",
            "add yourself to the group that owns it (render or video)"};
  }
  return {"AMD GPU", Verdict::ok, "/dev/kfd is accessible", ""};
}

Finding runtime() {
  void* library = ::dlopen("libhsa-runtime64.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    return {"HSA runtime", Verdict::missing, "libhsa-runtime64.so.1 is not found",
            "install ROCm's runtime (Debian: libhsa-runtime64-1) or set LD_LIBRARY_PATH"};
  }
  std::string path = "loaded";
  if (void* symbol = ::dlsym(library, "hsa_init")) {
    Dl_info information{};
    if (::dladdr(symbol, &information) != 0 && information.dli_fname != nullptr) path = information.dli_fname;
  }
  // A runtime that was built with it has loaded it by now.
  for (const char* name :
       {"librocprofiler-register.so.0", "librocprofiler-register.so.1", "librocprofiler-register.so"}) {
    if (void* registers = ::dlopen(name, RTLD_LAZY | RTLD_NOLOAD)) {
      path += ", with rocprofiler-register (capture goes through it)";
      ::dlclose(registers);
      break;
    }
  }
  ::dlclose(library);
  return {"HSA runtime", Verdict::ok, path, ""};
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// What keeps a capture out of an application, or shares it with another tool. What `kerncap` sets itself for the
// application (HSA_TOOLS_LIB, HSA_TOOLS_ROCPROFILER_V1_TOOLS, ROCPROFILER_REGISTER_LIBRARY) is only replaced, never
// joined.
Finding tools_environment() {
  struct Known {
    const char* name;
    const char* advice;
  };
  static constexpr Known known[] = {
      {"HSA_TOOLS_LIB", "captures and profiles replace it: that tool is not loaded into a captured application"},
      {"ROCP_TOOL_LIBRARIES",
       "another rocprofiler tool is loaded, too; the capture comes in beside it by HSA_TOOLS_ROCPROFILER_V1_TOOLS=1. "
       "Unset "
       "it if a capture sees nothing"},
      {"ROCPROFILER_REGISTER_LIBRARY",
       "another library stands in the place of rocprofiler-sdk; the capture comes in by "
       "HSA_TOOLS_ROCPROFILER_V1_TOOLS=1"},
      {"HSA_TOOLS_DISABLE_REGISTER",
       "the runtime does not use rocprofiler-register; the capture is loaded by HSA_TOOLS_LIB alone, which is enough"},
      {"LD_PRELOAD", "another library is loaded into the application, too; unset it if a capture sees nothing"},
  };
  for (const Known& k : known) {
    if (const std::string value = variable(k.name); !value.empty()) {
      return {"environment", Verdict::warning, fmt::format("{}={}", k.name, value), k.advice};
    }
  }
  return {"environment", Verdict::ok, "no other tool is loaded into applications", ""};
}

Finding compiler() {
  for (const char* name : {"hipcc", "amdclang++"}) {
    if (const auto path = support::find_program(name)) return {"HIP compiler", Verdict::ok, path->string(), ""};
  }
  return {"HIP compiler", Verdict::warning, "neither hipcc nor amdclang++ is on PATH",
          "needed to build applications and to rebuild kernels (Debian: apt-get install hipcc)"};
}

Finding build_tools() {
  std::string missing;
  for (const char* name : {"cmake", "ninja"}) {
    if (!support::find_program(name)) missing += std::string(missing.empty() ? "" : ", ") + name;
  }
  if (missing.empty()) return {"build tools", Verdict::ok, "cmake and ninja", ""};
  return {"build tools", Verdict::warning, missing + " not on PATH", "emitted projects are built with them"};
}

Finding part(const std::string& subject, const fs::path& path) {
  if (is_there(path)) return {subject, Verdict::ok, path.string(), ""};
  return {subject, Verdict::missing, path.string() + " is not there",
          "this installation is incomplete; install Kerncap again"};
}

Finding fixed_addresses() {
  const int before = ::personality(0xffffffff);
  if (before < 0 || ::personality(static_cast<unsigned long>(before) | ADDR_NO_RANDOMIZE) < 0) {
    return {"fixed addresses", Verdict::missing, "address randomisation cannot be turned off",
            "replay needs personality(ADDR_NO_RANDOMIZE); a container's seccomp profile may forbid it"};
  }
  ::personality(static_cast<unsigned long>(before));
  return {"fixed addresses", Verdict::ok, "address randomisation can be turned off", ""};
}

Finding locked_memory() {
  struct rlimit limit {};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= (std::uint64_t{64} << 20)) {
    return {"locked memory", Verdict::ok,
            limit.rlim_cur == RLIM_INFINITY ? "unlimited" : fmt::format("{} bytes", limit.rlim_cur), ""};
  }
  return {"locked memory", Verdict::warning, fmt::format("limited to {} bytes", limit.rlim_cur),
          "pinned buffers of a large capture may fail; raise 'ulimit -l'"};
}

Finding database(const Settings& settings) {
  const fs::path folder = settings.database.empty() ? compdb::find_database(fs::current_path()) : settings.database;
  if (folder.empty() || !is_there(folder)) {
    return {"database", Verdict::warning, "none here", "record one with: kerncap build -- <your build command>"};
  }
  return {"database", Verdict::ok, folder.string(), ""};
}

ExitCode doctor(const Program& program) {
  const Companions parts = companions();
  const std::vector<Finding> findings{
      devices(),
      runtime(),
      tools_environment(),
      compiler(),
      build_tools(),
      part("wrapper", parts.programs / "kerncap-cc"),
      part("masquerade", parts.masquerade / "hipcc"),
      part("capture", parts.libraries / "libkerncap-capture.so"),
      part("replayer", parts.programs / "kerncap-replay"),
      part("templates", parts.data / "templates"),
      part("software GPU", parts.libraries / "libkerncap-softgpu.so"),
      fixed_addresses(),
      locked_memory(),
      database(program.settings),
  };
  bool missing = false;
  Json list = Json::array();
  Table table({{"what"}, {"state"}, {"found"}});
  std::string advice;
  for (const Finding& finding : findings) {
    missing |= finding.verdict == Verdict::missing;
    table.add({finding.subject, to_string(finding.verdict), finding.found});
    if (!finding.advice.empty()) advice += fmt::format("{}: {}\n", finding.subject, finding.advice);
    list.push_back({{"subject", finding.subject},
                    {"state", to_string(finding.verdict)},
                    {"found", finding.found},
                    {"advice", finding.advice}});
  }
  if (program.json) {
    print(dump_json(Json{{"works", !missing}, {"findings", list}}));
  } else {
    print(table.text());
    if (!advice.empty()) print("\nWhat to do\n" + advice);
  }
  return missing ? ExitCode::environment : ExitCode::done;
}

}  // namespace

void add_doctor(Program& program) {
  CLI::App& command = program.add("doctor", "Say what works on this machine, and what to do about what doesn't",
                                  "  kerncap doctor\n  kerncap doctor --json\n");
  program.run_with(command, [&program] { return doctor(program); });
}

}  // namespace kerncap::cli
