#pragma once

#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace common {

// Command lines of the form `--name value`, `--name=value` and `--flag`, with a generated --help.
class CommandLine {
 public:
  explicit CommandLine(std::string summary) : summary_(std::move(summary)) {}

  template <typename T>
  void add(const std::string& name, T* target, const std::string& help) {
    std::ostringstream initial;
    initial << *target;
    options_.push_back({name, help, initial.str(), false,
                        [](void* where, const std::string& text) {
                          std::istringstream in(text);
                          in >> *static_cast<T*>(where);
                          return !in.fail() && (in.eof() || in.peek() == std::istringstream::traits_type::eof());
                        },
                        target});
  }

  void add_flag(const std::string& name, bool* target, const std::string& help) {
    options_.push_back({name, help, "", true,
                        [](void* where, const std::string&) {
                          *static_cast<bool*>(where) = true;
                          return true;
                        },
                        target});
  }

  // Fills the targets. Prints and exits for --help (0) and for a wrong command line (2).
  void parse(int argc, char** argv) const {
    for (int i = 1; i < argc; ++i) {
      std::string word = argv[i];
      if (word == "--help" || word == "-h") {
        print_help(argv[0]);
        std::exit(0);
      }
      std::string value;
      const std::size_t equals = word.find('=');
      const bool inline_value = equals != std::string::npos;
      if (inline_value) {
        value = word.substr(equals + 1);
        word.resize(equals);
      }
      const Option* option = find(word);
      if (option == nullptr) wrong_usage(argv[0], "unknown option " + word);
      if (option->is_flag) {
        if (inline_value) wrong_usage(argv[0], word + " takes no value");
      } else if (!inline_value) {
        if (i + 1 == argc) wrong_usage(argv[0], word + " needs a value");
        value = argv[++i];
      }
      if (!option->store(option->target, value)) wrong_usage(argv[0], "'" + value + "' is no value for " + word);
    }
  }

  [[noreturn]] static void wrong_usage(const std::string& program, const std::string& message) {
    std::cerr << program << ": " << message << " (try --help)\n";
    std::exit(2);
  }

 private:
  struct Option {
    std::string name;
    std::string help;
    std::string initial;
    bool is_flag;
    bool (*store)(void* target, const std::string& text);
    void* target;
  };

  const Option* find(const std::string& word) const {
    for (const Option& option : options_) {
      if (word == "--" + option.name) return &option;
    }
    return nullptr;
  }

  void print_help(const std::string& program) const {
    std::cout << summary_ << "\n\nUsage: " << program << " [options]\n";
    for (const Option& option : options_) {
      std::cout << "  --" << std::left << std::setw(20) << option.name + (option.is_flag ? "" : " VALUE") << ' '
                << option.help;
      if (!option.is_flag) std::cout << " (default " << option.initial << ')';
      std::cout << '\n';
    }
    std::cout << "  --help                 this text\n"
              << "Exit code: 0 the result is right, 1 it is wrong, 2 wrong usage, 3 no usable GPU or a HIP error.\n";
  }

  std::string summary_;
  std::vector<Option> options_;
};

}  // namespace common
