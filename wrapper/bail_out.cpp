#include "wrapper/bail_out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wrapper/run.h"

namespace kerncap::wrapper {
namespace {

constexpr int cannot_execute = 126;  // as shells say it

const char* program_instead = nullptr;
char* const* arguments_instead = nullptr;
bool compiler_ended = false;
int compiler_status = 0;

}  // namespace

void bail_out_into(const char* program, char* const* arguments) {
  program_instead = program;
  arguments_instead = arguments;
}

void bail_out_with(int status) {
  compiler_ended = true;
  compiler_status = status;
}

void bail_out(const char* why) {
  constexpr char before[] = "kerncap-cc: warning: a compile was not recorded: ";
  const bool heard = write(STDERR_FILENO, before, sizeof before - 1) > 0 &&
                     write(STDERR_FILENO, why, strlen(why)) > 0 && write(STDERR_FILENO, "\n", 1) > 0;
  if (compiler_ended) end_like(compiler_status);
  if (program_instead != nullptr) execvp(program_instead, arguments_instead);
  _exit(heard ? cannot_execute : cannot_execute + 1);
}

}  // namespace kerncap::wrapper

// What libstdc++'s headers call where they would throw (bits/functexcept.h). With these here none of the machinery of
// exceptions is linked, nor what it needs in turn: half a megabyte that each start would have to map.
namespace std {  // NOLINT(cert-dcl58-cpp)

void __throw_length_error(const char* what) { kerncap::wrapper::bail_out(what); }
void __throw_logic_error(const char* what) { kerncap::wrapper::bail_out(what); }
void __throw_out_of_range(const char* what) { kerncap::wrapper::bail_out(what); }
void __throw_out_of_range_fmt(const char* what, ...) { kerncap::wrapper::bail_out(what); }
void __throw_bad_alloc() { kerncap::wrapper::bail_out("out of memory"); }
void __throw_bad_array_new_length() { kerncap::wrapper::bail_out("out of memory"); }
void __throw_bad_function_call() { kerncap::wrapper::bail_out("an empty function was called"); }

}  // namespace std
