// Which code objects stand in which output file: looked at once for each state of the file (its size and time), and
// kept.
//
// What is known of a file's earlier state stays until the record that describes it is gone, so that a digest that was
// indexed before a rebuild still leads to the record that produced it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

namespace kerncap::compdb {

struct IndexedCodeObject {
  std::string digest, target;
  bool is_bitcode = false;
  std::vector<std::string> kernels;  // mangled function names
  std::vector<std::string> cuids;    // hexadecimal
};

struct IndexedObject {
  std::string path;
  std::uint64_t size = 0, mtime = 0;
  std::vector<IndexedCodeObject> code_objects;
};

class ObjectIndex {
 public:
  // Reads FILE; a damaged or missing one is an empty index.
  explicit ObjectIndex(std::filesystem::path file);

  // What stands in the file now; reads it when this state of it is not known yet. Empty for files without code objects,
  // missing files and files that cannot be read as what they seem to be.
  const std::vector<IndexedCodeObject>& current(const std::string& path);
  // What stood in the file when it had this size and time; nullptr when nobody looked then.
  const std::vector<IndexedCodeObject>* at(const std::string& path, std::uint64_t size, std::uint64_t mtime) const;

  std::uint64_t objects_read() const { return objects_read_; }
  // Publishes by rename; quietly does nothing when the folder cannot be written.
  void save();

 private:
  std::filesystem::path file_;
  std::unordered_map<std::string, std::vector<IndexedObject>> objects_;  // by path, oldest state first
  bool changed_ = false;
  std::uint64_t objects_read_ = 0;
};

}  // namespace kerncap::compdb
