#include "core/compdb/object_index.h"

#include <exception>

#include "core/codeobject/code_object.h"
#include "core/compdb/coder.h"
#include "core/compdb/file_system.h"
#include "core/compdb/frame.h"
#include "core/support/error.h"
#include "core/support/file.h"

namespace kerncap::compdb {
namespace {

constexpr std::uint64_t largest_index = std::uint64_t{1} << 30;
constexpr std::size_t states_kept = 4;  // of one file

constexpr auto each_text = [](auto& coder, auto& value) { coder.text(value); };

template <typename Coder, typename Objects>
void describe(Coder& coder, Objects& objects) {
  coder.list(objects, [](auto& c, auto& object) {
    c.text(object.path);
    c.integer(object.size);
    c.integer(object.mtime);
    c.list(object.code_objects, [](auto& d, auto& code_object) {
      d.text(code_object.digest);
      d.text(code_object.target);
      d.integer(code_object.is_bitcode);
      d.list(code_object.kernels, each_text);
      d.list(code_object.cuids, each_text);
    });
  });
}

std::vector<IndexedCodeObject> look_into(const std::string& path) {
  std::vector<IndexedCodeObject> result;
  try {
    const support::MappedFile file(path);
    for (const codeobject::FoundCodeObject& found : codeobject::find_code_objects(file.bytes(), path)) {
      IndexedCodeObject& entry = result.emplace_back();
      entry.digest = found.digest;
      entry.target = found.target;
      entry.is_bitcode = found.is_bitcode;
      if (found.is_bitcode) continue;
      try {
        const codeobject::CodeObject parsed = codeobject::parse_code_object(found.bytes, path);
        for (const codeobject::Kernel& kernel : parsed.kernels) entry.kernels.push_back(kernel.name);
        entry.cuids = parsed.cuids;
      } catch (const support::Error&) {
        // The digest alone is enough to find the record.
      }
    }
  } catch (const support::Error&) {
    // Not an object file after all (assembly, a dependency list, ...), or a damaged one: nothing to index.
  }
  return result;
}

}  // namespace

ObjectIndex::ObjectIndex(std::filesystem::path file) : file_(std::move(file)) {
  std::string bytes;
  if (!read_file(file_.string(), largest_index, bytes)) return;
  Frame frame;
  std::string payload;
  if (!frame_at(bytes, 0, frame) || frame.type != static_cast<std::uint16_t>(FrameType::object_index) ||
      frame.version != frame_version || !frame_payload(frame, payload)) {
    return;
  }
  Decoder decoder(payload);
  std::vector<IndexedObject> objects;
  describe(decoder, objects);
  if (!decoder.good()) return;
  for (IndexedObject& object : objects) objects_[object.path].push_back(std::move(object));
}

const std::vector<IndexedCodeObject>& ObjectIndex::current(const std::string& path) {
  const FileIdentity file = identify(path);
  static const std::vector<IndexedCodeObject> none;
  if (!file.regular) return none;
  std::vector<IndexedObject>& states = objects_[path];
  for (const IndexedObject& state : states) {
    if (state.size == file.size && state.mtime == file.mtime) return state.code_objects;
  }
  changed_ = true;
  ++objects_read_;
  if (states.size() >= states_kept) states.erase(states.begin());
  states.push_back({.path = path, .size = file.size, .mtime = file.mtime, .code_objects = look_into(path)});
  return states.back().code_objects;
}

const std::vector<IndexedCodeObject>* ObjectIndex::at(const std::string& path, std::uint64_t size,
                                                      std::uint64_t mtime) const {
  const auto found = objects_.find(path);
  if (found == objects_.end()) return nullptr;
  for (const IndexedObject& state : found->second) {
    if (state.size == size && state.mtime == mtime) return &state.code_objects;
  }
  return nullptr;
}

void ObjectIndex::save() {
  if (!changed_) return;
  std::vector<IndexedObject> all;
  for (const auto& [path, states] : objects_) all.insert(all.end(), states.begin(), states.end());
  Encoder encoder;
  describe(encoder, all);
  try {
    support::write_file_atomically(file_, make_frame(FrameType::object_index, encoder.finish()), 0644);
    changed_ = false;
  } catch (const support::Error&) {
    // A read-only database still answers, only slower.
  }
}

}  // namespace kerncap::compdb
