#include "emit/language_options.h"

#include <array>
#include <string_view>

namespace kerncap::emit {
namespace {

struct KeptOption {
  std::string_view option;  // ends in '=' or names a prefix when `joined`
  bool joined;              // value in the same argument
  std::string_view driver;  // spelling for the driver; empty: as it is
};

constexpr auto kept_options = std::to_array<KeptOption>({
    {"-I", false, ""},
    {"-iquote", false, ""},
    {"-isystem", false, ""},
    {"-include", false, ""},
    {"-imacros", false, ""},
    {"-D", false, ""},
    {"-U", false, ""},
    {"-idirafter", false, ""},
    {"-std=", true, ""},
    {"-fvisibility=", true, ""},
    {"-ffp-contract=", true, ""},
});

// Flags that change macros or the meaning of code.
constexpr auto kept_flags = std::to_array<std::string_view>({
    "-fgpu-rdc",
    "-ffast-math",
    "-ffinite-math-only",
    "-fopenmp",
    "-fno-rtti",
    "-fms-extensions",
    "-fshort-enums",
    "-fno-signed-char",
    "-funsigned-char",
    "-fchar8_t",
    "-fcoroutines-ts",
    "-fgpu-allow-device-init",
    "-fgpu-default-stream=per-thread",
    "-fcuda-flush-denormals-to-zero",
    "-fgpu-flush-denormals-to-zero",
    "-fno-gnu-keywords",
    "-fdeclspec",
    "-fblocks",
    "-fno-char8_t",
    "-O0",
});

// The driver's own include folders; they come behind the user's -isystem, whatever their place on the command line.
bool is_internal_folder(std::string_view option) {
  return option == "-internal-isystem" || option == "-internal-externc-isystem" || option == "-c-isystem" ||
         option == "-cxx-isystem";
}

}  // namespace

std::vector<std::string> language_options(const std::vector<std::string>& cc1_arguments, const std::string& target) {
  std::vector<std::string> options{"-x",        "hip",       "--cuda-device-only", "--offload-arch=" + target,
                                   "-nogpulib", "-nogpuinc", "-nostdinc",          "-nostdinc++"};
  std::vector<std::string> internal;
  bool optimises = false;
  for (std::size_t i = 0; i < cc1_arguments.size(); ++i) {
    const std::string& argument = cc1_arguments[i];
    const bool has_value = i + 1 < cc1_arguments.size();
    if (argument == "-resource-dir" && has_value) {
      options.insert(options.end(), {argument, cc1_arguments[++i]});
    } else if (is_internal_folder(argument) && has_value) {
      internal.insert(internal.end(), {"-isystem", cc1_arguments[++i]});
    } else if (argument.starts_with("-O") && argument != "-O0") {
      optimises = true;
    } else if (argument == "-mllvm" || argument == "-main-file-name" || argument == "-o") {
      ++i;
    } else {
      for (const auto& flag : kept_flags)
        if (argument == flag) options.push_back(argument);
      for (const auto& kept : kept_options) {
        if (!kept.joined && argument == kept.option && has_value) {
          options.insert(options.end(), {argument, cc1_arguments[++i]});
          break;
        }
        if (kept.joined && argument.starts_with(kept.option)) {
          options.push_back(argument);
          break;
        }
        // "-DNAME", "-Ifolder": one argument. "-include" must not be taken for "-I".
        if (!kept.joined && kept.option.size() == 2 && argument.size() > 2 && argument.starts_with(kept.option)) {
          options.push_back(argument);
          break;
        }
      }
    }
  }
  if (optimises) options.push_back("-O1");  // __OPTIMIZE__
  options.insert(options.end(), internal.begin(), internal.end());
  return options;
}

}  // namespace kerncap::emit
