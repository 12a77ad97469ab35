// Emitting and telling about it: what emit and extract share.
#pragma once

#include "cli/program.h"
#include "emit/emit.h"

namespace kerncap::cli {

// Fills in where this installation keeps templates and helpers, and emits.
emit::EmitReport run_emit(emit::EmitOptions options);

std::string describe(const emit::EmitReport& report);
void print_report(const Program& program, const emit::EmitReport& report);

// 1 when the rebuilt code differs; a capture-only project is no failure.
support::ExitCode exit_code(const emit::EmitReport& report);

}  // namespace kerncap::cli
