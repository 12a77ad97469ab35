#include "emit/emit.h"
#include "emit/project.h"

namespace kerncap::emit {
namespace {

using support::Json;

Json to_json(const TranslationUnit& unit) {
  return {{"source", unit.source},
          {"output", unit.output},
          {"directory", unit.directory},
          {"compiler", unit.compiler},
          {"recorded", unit.recorded}};
}

}  // namespace

Json to_json(const EmitReport& report) {
  Json document{{"project", report.project.string()}, {"symbol", report.symbol}, {"demangled", report.demangled},
                {"code_object", report.code_object},  {"target", report.target}, {"capture_only", report.capture_only}};
  if (report.capture_only) document["capture_only_reason"] = report.capture_only_reason;
  document["runtime_compiled"] = report.runtime_compiled;
  if (report.translation_unit) document["translation_unit"] = to_json(*report.translation_unit);
  document["other_candidates"] = Json::array();
  for (const auto& unit : report.other_candidates) document["other_candidates"].push_back(to_json(unit));
  document["kernel"] = report.kernel ? kernel_json(report) : Json(nullptr);
  document["files"] = Json::array();
  for (const auto& file : report.files)
    document["files"].push_back({{"original", file.original}, {"path", file.project_path}, {"size", file.size}});
  if (report.rebuild)
    document["rebuild_check"] = {{"outcome", to_string(report.rebuild->outcome)},
                                 {"reason", report.rebuild->reason},
                                 {"digest", report.rebuild->digest},
                                 {"seconds", double(report.rebuild->wall) / 1e9}};
  else
    document["rebuild_check"] = nullptr;
  if (report.slice) {
    const Slice& slice = *report.slice;
    document["slice"] = {{"offered", slice.offered},
                         {"reason", slice.reason},
                         {"emptied", slice.emptied},
                         {"files", slice.files},
                         {"digest", slice.digest},
                         {"whole_seconds", double(slice.whole) / 1e9},
                         {"slice_seconds", double(slice.sliced) / 1e9}};
  }
  document["warnings"] = report.warnings;
  return document;
}

}  // namespace kerncap::emit
