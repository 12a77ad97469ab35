// kerncap completion: shell completion scripts, made from the commands and flags that the program really has. The
// scripts' text is in cli/completion/.
#include <algorithm>
#include <kainjow/mustache.hpp>

#include "cli/companions.h"
#include "cli/program.h"
#include "cli/table.h"
#include "core/support/file.h"

namespace kerncap::cli {
namespace {

namespace mustache = kainjow::mustache;
using support::ExitCode;

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

mustache::data names(const std::vector<std::string>& texts, const std::string& command) {
  mustache::data list{mustache::data::type::list};
  for (const std::string& text : texts) {
    mustache::data entry;
    entry.set("name", text);
    entry.set("command", command);
    list.push_back(entry);
  }
  return list;
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    const std::vector<std::string>& long_names = option->get_lnames();
    flags.insert(flags.end(), long_names.begin(), long_names.end());
  }
  return flags;
}

mustache::data describe(const CLI::App& app) {
  mustache::data commands{mustache::data::type::list};
  for (const CLI::App* command : commands_of(app)) {
    std::vector<std::string> nested, flags = flags_of(*command);
    for (const CLI::App* inner : commands_of(*command)) {
      nested.push_back(inner->get_name());
      const std::vector<std::string> more = flags_of(*inner);
      flags.insert(flags.end(), more.begin(), more.end());
    }
    const std::vector<std::string> global = flags_of(app);
    flags.insert(flags.end(), global.begin(), global.end());
    std::sort(flags.begin(), flags.end());
    flags.erase(std::unique(flags.begin(), flags.end()), flags.end());
    mustache::data entry;
    entry.set("name", command->get_name());
    entry.set("summary", command->get_description());
    entry.set("nested", names(nested, command->get_name()));
    entry.set("flags", names(flags, command->get_name()));
    commands.push_back(entry);
  }
  mustache::data all;
  all.set("commands", commands);
  all.set("flags", names(flags_of(app), ""));
  return all;
}

}  // namespace

void add_completion(Program& program) {
  CLI::App& command = program.add("completion", "Print a completion script for a shell",
                                  "  kerncap completion bash > /etc/bash_completion.d/kerncap\n"
                                  "  kerncap completion zsh > \"${fpath[1]}/_kerncap\"\n"
                                  "  kerncap completion fish > ~/.config/fish/completions/kerncap.fish\n");
  auto shell = std::make_shared<std::string>();
  command.add_option("shell", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  program.run_with(command, [&program, shell] {
    const std::filesystem::path file = require_companion(companions().data / "completion" / (*shell + ".mustache"));
    mustache::mustache script(support::read_text_file(file));
    print(script.render(describe(program.app)));
    return ExitCode::done;
  });
}

}  // namespace kerncap::cli
