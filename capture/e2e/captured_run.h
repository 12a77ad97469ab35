// Running a program under the capture library, on the software GPU where there is no real one, and what came of it.
#pragma once

#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "capture/config.h"
#include "capture/status.h"
#include "core/support/file.h"
#include "core/support/process.h"

namespace kerncap::capture::testing {

struct CapturedRun {
  support::ProcessResult process;
  std::vector<Status> statuses;
  std::map<std::string, std::vector<std::uint64_t>> said;  // the program's "key number" lines

  std::uint64_t value(const std::string& key) const {
    const auto found = said.find(key);
    return found == said.end() || found->second.empty() ? 0 : found->second.front();
  }
  const Status* only() const { return statuses.size() == 1 ? &statuses.front() : nullptr; }
};

class Runner {
 public:
  Runner() {
    config.status_folder = folder.path() / "status";
    config.output = folder.path() / "out.kcap";
    std::filesystem::create_directory(config.status_folder);
  }

  CapturedRun run(const std::vector<std::string>& argv, bool with_capture = true) {
    namespace fs = std::filesystem;
    const fs::path libraries = KERNCAP_TEST_LIBRARIES;
    const fs::path config_file = folder.path() / "config.json";
    support::write_file_atomically(config_file, support::dump_json(to_json(config)));
    support::Command command;
    command.argv = argv;
    command.environment = environment;
    if (!fs::exists("/dev/kfd")) {
      command.environment["LD_PRELOAD"] = (libraries / "libkerncap-softgpu.so").string();
      command.environment["KERNCAP_SOFTGPU_ARCH"] = KERNCAP_TEST_ARCHITECTURE;
      if (environment.contains("KERNCAP_TEST_DEVICES"))
        command.environment["KERNCAP_SOFTGPU_ARCH"] = KERNCAP_TEST_ARCHITECTURE "," KERNCAP_TEST_ARCHITECTURE;
    }
    if (!preload.empty()) {
      auto& all = command.environment["LD_PRELOAD"];
      all = all ? *all + ":" + preload : preload;
    }
    if (with_capture) {
      command.environment["HSA_TOOLS_LIB"] = (libraries / "libkerncap-capture.so").string();
      command.environment["HSA_TOOLS_REPORT_LOAD_FAILURE"] = "1";
      command.environment[config_variable] = config_file.string();
    }
    command.standard_output = command.standard_error = support::Stream::capture;
    command.timeout = timeout;
    CapturedRun result;
    result.process = support::run(command);
    result.statuses = read_statuses(config.status_folder);
    std::istringstream lines(result.process.standard_output);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string key;
      std::uint64_t number = 0;
      if (words >> key >> number) result.said[key].push_back(number);
    }
    return result;
  }

  support::TemporaryFolder folder;
  Config config;
  std::map<std::string, std::optional<std::string>> environment;
  std::chrono::milliseconds timeout{90000};  // killed past it
  std::string preload;                       // behind the software GPU
};

}  // namespace kerncap::capture::testing
