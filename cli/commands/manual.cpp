// kerncap manual: manual pages in roff, made from the commands and flags that the program really has. The page's text
// is in cli/manual/.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <kainjow/mustache.hpp>
#include <sstream>

#include "cli/companions.h"
#include "cli/program.h"
#include "cli/table.h"
#include "core/support/file.h"
#include "kerncap_version.h"

namespace kerncap::cli {
namespace {

namespace mustache = kainjow::mustache;
using support::ExitCode;

// roff reads backslashes as escapes, a plain '-' as a hyphen, and a leading '.' or '\'' as a request (groff_char(7)).
std::string roff(const std::string& text) {
  std::string escaped;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool line_start = i == 0 || text[i - 1] == '\n';
    if (line_start && (text[i] == '.' || text[i] == '\'')) escaped += "\\&";
    if (text[i] == '\\') {
      escaped += "\\e";
    } else if (text[i] == '-') {
      escaped += "\\-";
    } else {
      escaped += text[i];
    }
  }
  return escaped;
}

mustache::data item(const std::string& name, const std::string& text) {
  mustache::data entry;
  entry.set("name", name);
  entry.set("text", text.empty() ? " " : text);
  return entry;
}

void set_list(mustache::data& page, const std::string& name, std::vector<mustache::data> entries) {
  mustache::data list{mustache::data::type::list};
  for (mustache::data& entry : entries) list.push_back(std::move(entry));
  page.set("has_" + name, entries.empty() ? mustache::data::type::bool_false : mustache::data::type::bool_true);
  page.set(name, list);
}

mustache::data lines(const std::string& text) {
  mustache::data list{mustache::data::type::list};
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) list.push_back(mustache::data("line", line));
  return list;
}

std::vector<mustache::data> options_of(const CLI::App& app) {
  std::vector<mustache::data> entries;
  const bool whole = app.get_parent() == nullptr;
  for (const CLI::Option* option : app.get_options([](const CLI::Option* o) { return o->nonpositional(); })) {
    if (!whole && (option == app.get_help_ptr() || option == app.get_help_all_ptr())) continue;  // said once is enough
    std::string name = option->get_name(false, true);
    const std::string value = option->get_type_name();
    if (option->get_items_expected_max() > 0 && !value.empty()) name += " " + value;
    entries.push_back(item(name, option->get_description()));
  }
  return entries;
}

std::vector<mustache::data> arguments_of(const CLI::App& app) {
  std::vector<mustache::data> entries;
  for (const CLI::Option* option : app.get_options([](const CLI::Option* o) { return o->get_positional(); })) {
    entries.push_back(item(option->get_name(true), option->get_description()));
  }
  return entries;
}

std::string synopsis_of(const CLI::App& app, const std::string& name) {
  std::string text = name + " [OPTIONS]";
  for (const CLI::Option* option : app.get_options([](const CLI::Option* o) { return o->get_positional(); })) {
    text += option->get_required() ? " " + option->get_name(true) : " [" + option->get_name(true) + "]";
  }
  if (!app.get_subcommands([](const CLI::App*) { return true; }).empty()) text += " COMMAND";
  // Examples show whether a command line of the user's own follows.
  if (app.get_footer().find(" -- ") != std::string::npos) text += " [-- COMMAND...]";
  return text;
}

// The page of `command`, or of the whole program when it is the program itself.
std::string render_page(const CLI::App& program, const CLI::App& command) {
  const bool whole = &program == &command;
  const std::string name = whole ? "kerncap" : "kerncap-" + command.get_name();
  mustache::data page;
  page.set("page", name);
  std::string title = name;
  std::transform(title.begin(), title.end(), title.begin(), [](unsigned char c) { return std::toupper(c); });
  page.set("title", title);
  page.set("version", KERNCAP_VERSION);
  page.set("summary", command.get_description());
  page.set("synopsis", lines(synopsis_of(command, whole ? "kerncap" : "kerncap " + command.get_name())));
  set_list(page, "arguments", arguments_of(command));
  set_list(page, "options", options_of(command));

  std::vector<mustache::data> commands, nested, see_also;
  for (const CLI::App* inner : command.get_subcommands([](const CLI::App*) { return true; })) {
    mustache::data entry = item(inner->get_name(), inner->get_description());
    if (whole) {
      commands.push_back(entry);
      see_also.push_back(item("kerncap-" + inner->get_name(), ""));
    } else {
      entry.set("name", synopsis_of(*inner, "kerncap " + command.get_name() + " " + inner->get_name()));
      set_list(entry, "options", options_of(*inner));
      nested.push_back(entry);
    }
  }
  if (!whole) see_also.push_back(item("kerncap", ""));
  for (std::size_t i = 0; i < see_also.size(); ++i) see_also[i].set("separator", i + 1 < see_also.size() ? "," : "");
  set_list(page, "commands", std::move(commands));
  set_list(page, "nested", std::move(nested));
  set_list(page, "see_also", std::move(see_also));

  std::string footer = command.get_footer();
  constexpr std::string_view examples = "Examples:\n";
  if (footer.starts_with(examples)) footer.erase(0, examples.size());
  page.set("has_notes", footer.empty() ? mustache::data::type::bool_false : mustache::data::type::bool_true);
  page.set("notes_heading", whole ? "NOTES" : "EXAMPLES");
  page.set("notes", lines(footer));
  page.set("exit_status", whole ? mustache::data::type::bool_false : mustache::data::type::bool_true);

  mustache::mustache text(support::read_text_file(require_companion(companions().data / "manual" / "page.mustache")));
  text.set_custom_escape(roff);
  return text.render(page);
}

}  // namespace

void add_manual(Program& program) {
  CLI::App& command = program.add("manual", "Print a manual page, or write all of them into a folder",
                                  "  kerncap manual extract | man -l -\n"
                                  "  kerncap manual --folder /usr/local/share/man/man1\n");
  auto topic = std::make_shared<std::string>();
  auto folder = std::make_shared<std::string>();
  CLI::Option* one = command.add_option("topic", *topic, "A command of kerncap; without one, the program as a whole");
  command.add_option("--folder", *folder, "Write the pages of the program and of every command there")
      ->type_name("DIR")
      ->excludes(one);
  program.run_with(command, [&program, topic, folder] {
    const auto all = [](const CLI::App*) { return true; };
    if (!folder->empty()) {
      const std::filesystem::path target = *folder;
      std::filesystem::create_directories(target);
      support::write_file_atomically(target / "kerncap.1", render_page(program.app, program.app), 0644);
      for (const CLI::App* inner : program.app.get_subcommands(all)) {
        support::write_file_atomically(target / ("kerncap-" + inner->get_name() + ".1"), render_page(program.app, *inner),
                                     0644);
      }
      return ExitCode::done;
    }
    if (topic->empty()) {
      print(render_page(program.app, program.app));
      return ExitCode::done;
    }
    for (const CLI::App* inner : program.app.get_subcommands(all)) {
      if (inner->get_name() != *topic) continue;
      print(render_page(program.app, *inner));
      return ExitCode::done;
    }
    support::fail(ExitCode::usage, "kerncap has no command '{}'; 'kerncap --help' lists them", *topic);
  });
}

}  // namespace kerncap::cli
