#include "core/compdb/arguments.h"

#include <algorithm>
#include <array>
#include <optional>

#include "core/compdb/file_system.h"

namespace kerncap::compdb {
namespace {

// How an option takes its value. Sources: clang -### / Options.td, gcc(1), nvcc --help.
enum class Value {
  none,      // a flag, or a value joined to it that needs no look
  separate,  // the next argument, always
  either,    // joined when there is more in this argument, else the next one
};

enum class Meaning {
  ignored,
  query,
  preprocess,
  syntax_only,
  assembly,
  compile,
  precompile,
  output,
  language,
  dependencies,
  user_dependencies,
  dependency_file,
  working_directory,
  system_folder,
  target,
  no_target,
  rdc,
  no_rdc,
  new_driver,
  old_driver,
  compressed,
  lto,
  no_lto,
  offload,
  preprocessor_list,  // -Wp,a,b
  link_mode,
};

struct Option {
  std::string_view name;
  Value value;
  Meaning meaning;
  bool prefix = false;  // `name` need only be the beginning
};

// The longest matching entry wins; whatever is not here is a flag without a separate value.
constexpr auto options = std::to_array<Option>({
    {"--version", Value::none, Meaning::query},
    {"-version", Value::none, Meaning::query},
    {"--help", Value::none, Meaning::query, true},
    {"-help", Value::none, Meaning::query},
    {"-h", Value::none, Meaning::query},
    {"-###", Value::none, Meaning::query},
    {"--dryrun", Value::none, Meaning::query},
    {"-dryrun", Value::none, Meaning::query},
    {"-print-", Value::none, Meaning::query, true},
    {"--print-", Value::none, Meaning::query, true},
    {"-dumpversion", Value::none, Meaning::query},
    {"-dumpfullversion", Value::none, Meaning::query},
    {"-dumpmachine", Value::none, Meaning::query},
    {"-dumpspecs", Value::none, Meaning::query},
    {"--autocomplete=", Value::none, Meaning::query, true},
    {"-cc1", Value::none, Meaning::query},
    {"-cc1as", Value::none, Meaning::query},
    {"--list-gpu-arch", Value::none, Meaning::query},
    {"--list-gpu-code", Value::none, Meaning::query},
    {"-E", Value::none, Meaning::preprocess},
    {"--preprocess", Value::none, Meaning::preprocess},
    {"-M", Value::none, Meaning::preprocess},
    {"-MM", Value::none, Meaning::preprocess},
    {"--dependencies", Value::none, Meaning::preprocess},
    {"-fsyntax-only", Value::none, Meaning::syntax_only},
    {"-S", Value::none, Meaning::assembly},
    {"--assemble", Value::none, Meaning::assembly},
    {"-c", Value::none, Meaning::compile},
    {"--compile", Value::none, Meaning::compile},
    {"--precompile", Value::none, Meaning::precompile},
    {"-dc", Value::none, Meaning::rdc},
    {"--device-c", Value::none, Meaning::rdc},
    {"-o", Value::either, Meaning::output},
    {"--output", Value::separate, Meaning::output},
    {"--output=", Value::either, Meaning::output},
    {"--output-file", Value::separate, Meaning::output},
    {"-x", Value::either, Meaning::language},
    {"--language", Value::separate, Meaning::language},
    {"--language=", Value::either, Meaning::language},
    {"-MD", Value::none, Meaning::dependencies},
    {"--generate-dependencies-with-compile", Value::none, Meaning::dependencies},
    {"-MMD", Value::none, Meaning::user_dependencies},
    {"-MF", Value::either, Meaning::dependency_file},
    {"-MT", Value::either, Meaning::ignored},
    {"-MQ", Value::either, Meaning::ignored},
    {"-MJ", Value::either, Meaning::ignored},
    {"-Wp,", Value::none, Meaning::preprocessor_list, true},
    {"-working-directory", Value::separate, Meaning::working_directory},
    {"-working-directory=", Value::either, Meaning::working_directory},
    {"-I", Value::either, Meaning::ignored},
    {"-D", Value::either, Meaning::ignored},
    {"-U", Value::either, Meaning::ignored},
    {"-L", Value::either, Meaning::ignored},
    {"-l", Value::either, Meaning::ignored},
    {"-F", Value::either, Meaning::ignored},
    {"-T", Value::either, Meaning::ignored},
    {"-e", Value::separate, Meaning::ignored},
    {"-u", Value::separate, Meaning::ignored},
    {"-z", Value::either, Meaning::ignored},
    {"-A", Value::either, Meaning::ignored},
    {"-G", Value::separate, Meaning::ignored},
    {"-B", Value::either, Meaning::ignored},
    {"-isystem", Value::either, Meaning::system_folder},
    {"-idirafter", Value::either, Meaning::system_folder},
    {"-cxx-isystem", Value::either, Meaning::system_folder},
    {"-iquote", Value::either, Meaning::ignored},
    {"-include", Value::either, Meaning::ignored},
    {"-include-pch", Value::separate, Meaning::ignored},
    {"-imacros", Value::either, Meaning::ignored},
    {"-iprefix", Value::either, Meaning::ignored},
    {"-iwithprefix", Value::either, Meaning::ignored},
    {"-iwithprefixbefore", Value::either, Meaning::ignored},
    {"-isysroot", Value::either, Meaning::ignored},
    {"-imultilib", Value::separate, Meaning::ignored},
    {"-iframework", Value::either, Meaning::ignored},
    {"-ivfsoverlay", Value::either, Meaning::ignored},
    {"--sysroot", Value::separate, Meaning::ignored},
    {"--param", Value::separate, Meaning::ignored},
    {"-Xclang", Value::separate, Meaning::ignored},
    {"-Xcompiler", Value::separate, Meaning::ignored},
    {"-Xlinker", Value::separate, Meaning::ignored},
    {"-Xassembler", Value::separate, Meaning::ignored},
    {"-Xpreprocessor", Value::separate, Meaning::preprocessor_list},
    {"-Xanalyzer", Value::separate, Meaning::ignored},
    {"-Xoffload-linker", Value::separate, Meaning::ignored, true},
    {"-Xarch_", Value::separate, Meaning::ignored, true},
    {"-Xopenmp-target", Value::separate, Meaning::ignored, true},
    {"-Xthinlto-distributor=", Value::none, Meaning::ignored, true},
    {"-Xptxas", Value::separate, Meaning::ignored},
    {"-Xnvlink", Value::separate, Meaning::ignored},
    {"-Xfatbin", Value::separate, Meaning::ignored},
    {"-Xcudafe", Value::separate, Meaning::ignored},
    {"-Xarchive", Value::separate, Meaning::ignored},
    {"-Xcuda-fatbinary", Value::separate, Meaning::ignored},
    {"-Xcuda-ptxas", Value::separate, Meaning::ignored},
    {"-mllvm", Value::separate, Meaning::ignored},
    {"-target", Value::separate, Meaning::ignored},
    {"-arch", Value::separate, Meaning::ignored},
    {"-gcc-toolchain", Value::separate, Meaning::ignored},
    {"--config", Value::separate, Meaning::ignored},
    {"-resource-dir", Value::separate, Meaning::ignored},
    {"-plugin", Value::separate, Meaning::ignored},
    {"-dumpbase", Value::separate, Meaning::ignored},
    {"-dumpbase-ext", Value::separate, Meaning::ignored},
    {"-dumpdir", Value::separate, Meaning::ignored},
    {"-aux-info", Value::separate, Meaning::ignored},
    {"-wrapper", Value::separate, Meaning::ignored},
    {"-install_name", Value::separate, Meaning::ignored},
    {"-soname", Value::separate, Meaning::ignored},
    {"-rpath", Value::separate, Meaning::ignored},
    {"-serialize-diagnostics", Value::separate, Meaning::ignored},
    {"--serialize-diagnostics", Value::separate, Meaning::ignored},
    {"-dependency-file", Value::separate, Meaning::ignored},
    {"--offload-arch=", Value::either, Meaning::target},
    {"--offload-arch", Value::separate, Meaning::target},
    {"--cuda-gpu-arch=", Value::either, Meaning::target},
    {"--amdgpu-target=", Value::either, Meaning::target},
    {"--no-offload-arch=", Value::either, Meaning::no_target},
    {"--no-cuda-gpu-arch=", Value::either, Meaning::no_target},
    {"-fgpu-rdc", Value::none, Meaning::rdc},
    {"-fcuda-rdc", Value::none, Meaning::rdc},
    {"-fno-gpu-rdc", Value::none, Meaning::no_rdc},
    {"--offload-new-driver", Value::none, Meaning::new_driver},
    {"-foffload-via-llvm", Value::none, Meaning::new_driver},
    {"--no-offload-new-driver", Value::none, Meaning::old_driver},
    {"--offload-compress", Value::none, Meaning::compressed},
    {"-flto", Value::none, Meaning::lto, true},
    {"-flto-", Value::none, Meaning::ignored, true},
    {"-fno-lto", Value::none, Meaning::no_lto},
    {"--hip-link", Value::none, Meaning::ignored},
    {"-shared", Value::none, Meaning::link_mode},
});

// nvcc spells some of them differently, and takes values where clang and gcc have flags.
constexpr auto nvcc_options = std::to_array<Option>({
    {"-arch", Value::separate, Meaning::target},
    {"--gpu-architecture", Value::separate, Meaning::target},
    {"-arch=", Value::either, Meaning::target},
    {"--gpu-architecture=", Value::either, Meaning::target},
    {"-code", Value::separate, Meaning::ignored},
    {"--gpu-code", Value::separate, Meaning::ignored},
    {"-gencode", Value::separate, Meaning::ignored},
    {"--generate-code", Value::separate, Meaning::ignored},
    {"-ccbin", Value::separate, Meaning::ignored},
    {"--compiler-bindir", Value::separate, Meaning::ignored},
    {"--compiler-options", Value::separate, Meaning::ignored},
    {"--linker-options", Value::separate, Meaning::ignored},
    {"--archive-options", Value::separate, Meaning::ignored},
    {"--ptxas-options", Value::separate, Meaning::ignored},
    {"--nvlink-options", Value::separate, Meaning::ignored},
    {"-std", Value::separate, Meaning::ignored},
    {"-m", Value::separate, Meaning::ignored},
    {"-t", Value::separate, Meaning::ignored},
    {"--threads", Value::separate, Meaning::ignored},
    {"-rdc", Value::separate, Meaning::ignored},
    {"-rdc=true", Value::none, Meaning::rdc},
    {"--relocatable-device-code=true", Value::none, Meaning::rdc},
    {"-maxrregcount", Value::separate, Meaning::ignored},
    {"-diag-suppress", Value::separate, Meaning::ignored},
    {"-odir", Value::separate, Meaning::ignored},
    {"-keep-dir", Value::separate, Meaning::ignored},
    {"-cudart", Value::separate, Meaning::ignored},
    {"-include", Value::separate, Meaning::ignored},
    {"-ptx", Value::none, Meaning::assembly},
    {"--ptx", Value::none, Meaning::assembly},
    {"-cubin", Value::none, Meaning::compile},
    {"-fatbin", Value::none, Meaning::compile},
    {"-dw", Value::none, Meaning::rdc},
    {"-lib", Value::none, Meaning::link_mode},
});

struct Suffix {
  std::string_view suffix, language;
};
constexpr auto suffixes = std::to_array<Suffix>({
    {".c", "c"},          {".cc", "c++"},    {".cpp", "c++"},     {".cxx", "c++"},       {".c++", "c++"},
    {".C", "c++"},        {".CPP", "c++"},   {".cp", "c++"},      {".CC", "c++"},        {".cppm", "c++"},
    {".ixx", "c++"},      {".pcm", "pcm"},   {".hip", "hip"},     {".cu", "cuda"},       {".cui", "cuda"},
    {".hipi", "hip"},     {".i", "c"},       {".ii", "c++"},      {".s", "assembler"},   {".S", "assembler"},
    {".sx", "assembler"}, {".ll", "ir"},     {".bc", "ir"},       {".m", "objective-c"}, {".mm", "objective-c++"},
    {".cl", "cl"},        {".h", "header"},  {".hh", "header"},   {".hpp", "header"},    {".hxx", "header"},
    {".H", "header"},     {".f", "fortran"}, {".f90", "fortran"}, {".F90", "fortran"},   {".cuh", "header"},
});

std::string language_of(std::string_view path) {
  const std::string name = base_name(path);
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos) return {};
  for (const Suffix& entry : suffixes) {
    if (name.compare(dot, std::string::npos, entry.suffix) == 0) return std::string(entry.language);
  }
  return {};
}

bool matches(const Option& option, std::string_view argument) {
  if (argument == option.name) return true;
  // "-ofoo", "-Ifoo", "--offload-arch=x": the value is joined.
  return (option.prefix || option.value == Value::either) && argument.starts_with(option.name);
}

template <std::size_t Size>
const Option* longest_match(const std::array<Option, Size>& table, std::string_view argument) {
  const Option* best = nullptr;
  for (const Option& option : table) {
    // Most of the table is out by its second character, and this runs for every argument of a build.
    if (argument.size() < 2 || option.name[1] != argument[1]) continue;
    if (matches(option, argument) && (best == nullptr || option.name.size() > best->name.size())) best = &option;
  }
  return best;
}

// "-oops" must not be read as "-o ops" by a table that is unsure; these begin like short options but are flags.
constexpr std::string_view flags_like_values[] = {"-lto", "-object", "-end-group", "-undefined"};

const Option* find_option(std::string_view argument, bool nvcc) {
  if (std::ranges::find(flags_like_values, argument) != std::end(flags_like_values)) return nullptr;
  if (nvcc) {
    if (const Option* option = longest_match(nvcc_options, argument)) return option;
  }
  return longest_match(options, argument);
}

void add_targets(std::vector<std::string>& targets, std::string_view list) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string target(list.substr(0, comma));
    if (!target.empty() && std::ranges::find(targets, target) == targets.end()) targets.push_back(target);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

void remove_targets(std::vector<std::string>& targets, std::string_view list) {
  if (list == "all") return targets.clear();
  std::vector<std::string> unwanted;
  add_targets(unwanted, list);
  std::erase_if(targets, [&](const std::string& t) { return std::ranges::find(unwanted, t) != unwanted.end(); });
}

class Parser {
 public:
  Parser(const std::vector<std::string>& argv, std::string_view family) : argv_(argv), nvcc_(family == "nvcc") {
    if (family == "hipcc" || nvcc_) line_.offload = true;
  }

  CommandLine parse() {
    bool only_inputs = false;
    for (at_ = 1; at_ < argv_.size(); ++at_) {
      const std::string_view argument = argv_[at_];
      if (only_inputs || !argument.starts_with('-') || argument == "-") {
        add_input(std::string(argument));
      } else if (argument == "--") {
        only_inputs = true;
      } else if (const Option* option = find_option(argument, nvcc_)) {
        apply(*option, argument);
      }
    }
    finish();
    return std::move(line_);
  }

 private:
  void add_input(std::string path) {
    std::string language = forced_language_.empty() ? language_of(path) : forced_language_;
    if (path == "-" && language.empty()) language = "c";
    if (language.empty()) {
      if (path != "-") line_.link_inputs.push_back(std::move(path));
      return;
    }
    if (language == "hip" || language == "cuda") line_.offload = true;
    line_.sources.push_back({std::move(path), std::move(language)});
  }

  std::string_view value_of(const Option& option, std::string_view argument) {
    if (option.value == Value::either && argument.size() > option.name.size()) {
      return argument.substr(option.name.size());
    }
    if (option.value == Value::none) return {};
    return at_ + 1 < argv_.size() ? std::string_view(argv_[++at_]) : std::string_view();
  }

  // Later actions win over earlier ones of less work, as in the drivers: -E over -S over -c.
  void set_action(Action action, int strength) {
    if (strength >= strength_) {
      strength_ = strength;
      action_ = action;
    }
  }

  void apply(const Option& option, std::string_view argument) {
    const std::string_view value = value_of(option, argument);
    switch (option.meaning) {
      case Meaning::ignored:
      case Meaning::link_mode:
        break;
      case Meaning::query:
        set_action(Action::query, 9);
        break;
      case Meaning::preprocess:
        set_action(Action::preprocess, 8);
        break;
      case Meaning::syntax_only:
        set_action(Action::syntax_only, 7);
        break;
      case Meaning::assembly:
        set_action(Action::assembly, 6);
        break;
      case Meaning::compile:
        set_action(Action::compile, 5);
        break;
      case Meaning::precompile:
        set_action(Action::precompile, 5);
        break;
      case Meaning::output:
        line_.output = value;
        break;
      case Meaning::language:
        forced_language_ = value == "none" ? std::string_view() : value == "cu" ? "cuda" : value;  // nvcc's spelling
        break;
      case Meaning::dependencies:
        line_.writes_dependencies = true;
        break;
      case Meaning::user_dependencies:
        line_.writes_dependencies = line_.user_headers_only = true;
        break;
      case Meaning::dependency_file:
        line_.dependency_file = value;
        break;
      case Meaning::working_directory:
        line_.working_directory = value;
        break;
      case Meaning::system_folder:
        line_.system_folders.emplace_back(value);
        break;
      case Meaning::target:
        line_.offload = true;
        add_targets(line_.device_targets, value);
        break;
      case Meaning::no_target:
        remove_targets(line_.device_targets, value);
        break;
      case Meaning::rdc:
        line_.rdc = true;
        if (argument == "-dc" || argument == "--device-c" || argument == "-dw") set_action(Action::compile, 5);
        break;
      case Meaning::no_rdc:
        line_.rdc = false;
        break;
      case Meaning::new_driver:
        line_.new_driver = true;
        break;
      case Meaning::old_driver:
        line_.new_driver = false;
        break;
      case Meaning::compressed:
        line_.compressed = true;
        break;
      case Meaning::lto:
        line_.lto = true;
        break;
      case Meaning::no_lto:
        line_.lto = false;
        break;
      case Meaning::offload:
        line_.offload = true;
        break;
      case Meaning::preprocessor_list:
        read_preprocessor_list(argument == "-Xpreprocessor" ? value : argument.substr(4));
        break;
    }
  }

  // -Wp,-MMD,out.d (the Linux kernel and older autotools) and the separate words of -Xpreprocessor.
  void read_preprocessor_list(std::string_view list) {
    bool file_follows = false;
    while (!list.empty()) {
      const std::size_t comma = std::min(list.find(','), list.size());
      const std::string_view word = list.substr(0, comma);
      list.remove_prefix(std::min(comma + 1, list.size()));
      if (word == "-MD" || word == "-MMD") {
        line_.writes_dependencies = true;
        if (word == "-MMD") line_.user_headers_only = true;
        file_follows = true;
      } else if (word == "-MF") {
        file_follows = true;
      } else if (file_follows) {
        line_.dependency_file = word;
        file_follows = false;
      }
    }
  }

  void finish() {
    line_.action = action_;
    const bool headers = !line_.sources.empty() && std::ranges::all_of(line_.sources, [](const SourceArgument& source) {
      return source.language == "header" || source.language.ends_with("-header");
    });
    if (line_.sources.empty() && (line_.link_inputs.empty() || action_ != Action::link)) {
      line_.action = Action::query;  // "-v" alone, "-c" without a file, ...
    } else if (headers && (action_ == Action::link || action_ == Action::compile)) {
      line_.action = Action::precompile;
    }
    if (line_.writes_dependencies && line_.dependency_file.empty()) {
      std::string stem = line_.output;
      if (stem.empty() && !line_.sources.empty()) stem = base_name(line_.sources.front().path);
      const std::size_t dot = stem.rfind('.');
      if (dot != std::string::npos && dot > stem.rfind('/') + 1) stem.resize(dot);
      line_.dependency_file = stem.empty() ? "" : stem + ".d";
    }
  }

  const std::vector<std::string>& argv_;
  bool nvcc_;
  std::size_t at_ = 0;
  CommandLine line_;
  std::string forced_language_;
  Action action_ = Action::link;
  int strength_ = 0;
};

}  // namespace

CommandLine parse_arguments(const std::vector<std::string>& argv, std::string_view family) {
  return Parser(argv, family).parse();
}

std::string compiler_family(std::string_view program) {
  std::string name = base_name(program);
  // A version at the end ("-15", "-12.2") says nothing of the family.
  std::size_t end = name.find_last_not_of("0123456789.");
  if (end != std::string::npos && end + 1 < name.size() && name[end] == '-') name.resize(end);
  const auto ends_with_word = [&](std::string_view word) {
    return name.ends_with(word) && (name.size() == word.size() || name[name.size() - word.size() - 1] == '-');
  };
  if (name == "hipcc" || name == "hipcc.pl" || name == "hipcc.bin") return "hipcc";
  if (name == "nvcc") return "nvcc";
  for (std::string_view clang : {"clang", "clang++", "amdclang", "amdclang++", "clang-cpp"}) {
    if (ends_with_word(clang)) return "clang";
  }
  for (std::string_view gcc : {"gcc", "g++", "c89-gcc", "c99-gcc"}) {
    if (ends_with_word(gcc)) return "gcc";
  }
  return "unknown";
}

std::string default_output(const CommandLine& line, const SourceArgument& source, std::string_view family) {
  std::string stem = base_name(source.path);
  const std::size_t dot = stem.rfind('.');
  switch (line.action) {
    case Action::link:
      return "a.out";
    case Action::precompile:
      if (source.language != "header" && !source.language.ends_with("-header")) {  // a module's interface
        if (dot != std::string::npos && dot != 0) stem.resize(dot);
        return stem + ".pcm";
      }
      return source.path + (family == "gcc" ? ".gch" : ".pch");
    case Action::compile:
    case Action::assembly:
      if (dot != std::string::npos && dot != 0) stem.resize(dot);
      return stem + (line.action == Action::compile ? ".o" : ".s");
    case Action::query:
    case Action::preprocess:
    case Action::syntax_only:
      return {};
  }
  return {};
}

}  // namespace kerncap::compdb
