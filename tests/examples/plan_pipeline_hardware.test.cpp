// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <plan_pipeline/hardware.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/estimate/model_shape.hpp>
#include <roundpipe/estimate/roofline.hpp>
#include <support/error_of.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace plan_pipeline_hardware_test {
namespace {

using namespace roundpipe;
using plan_pipeline::known_hardware;
using plan_pipeline::read_hardware;
using test::error_of;
using test::TemporaryFolder;

/// The shipped files; their folder follows from the place of this file.
std::filesystem::path shipped() {
  return std::filesystem::path(__FILE__).parent_path() / "../../examples/plan_pipeline/hardware";
}

nlohmann::json whole() {
  return nlohmann::json::parse(R"({"name": "card", "tflops": 1.5, "memory_gib": 2,
      "memory_gbps": 3, "link": {"up_gbps": 4, "down_gbps": 5, "latency_us": 6},
      "source": "made up"})");
}

/// The refusal of \p text: one line that begins with the file's name.
std::string refusal(std::string const& text) {
  TemporaryFolder const folder;
  auto const path = folder.path / "card.json";
  std::ofstream(path) << text;
  auto const error = error_of([&] { (void)read_hardware(path.string(), {}); });
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(error.message().find('\n') == std::string::npos);
  REQUIRE(error.message().starts_with(path.string() + ": "));
  return error.message().substr(path.string().size() + 2);
}

std::string refusal(nlohmann::json const& json) {
  return refusal(json.dump());
}

}  // namespace

TEST_CASE("a file is read into units of one") {
  TemporaryFolder const folder;
  std::ofstream(folder.path / "card.json") << whole();
  for (auto const& name : {std::string("card"), (folder.path / "card.json").string()}) {
    auto const hardware = read_hardware(name, folder.path);
    CHECK(hardware.device.name == "card");
    CHECK(hardware.device.flops_per_second == doctest::Approx(1.5e12));
    CHECK(hardware.device.memory_bytes == 2_GiB);
    CHECK(hardware.device.memory_bytes_per_second == doctest::Approx(3e9));
    CHECK(hardware.device.upload_bytes_per_second == doctest::Approx(4e9));
    CHECK(hardware.device.download_bytes_per_second == doctest::Approx(5e9));
    CHECK(hardware.latency_seconds == doctest::Approx(6e-6));
    CHECK(hardware.sustained_flops_per_second == 0);  // unknown
    CHECK(hardware.source == "made up");
  }
}

TEST_CASE("the shipped files are whole, and the RTX 4090 crosses the published ridge") {
  CHECK(known_hardware(shipped()) ==
        std::vector<std::string>{"a100", "h100", "h200", "rtx4090", "rtx5090"});
  for (auto const& name : known_hardware(shipped())) {
    CAPTURE(name);
    CHECK_NOTHROW((void)read_hardware(name, shipped()));
  }
  auto const device = read_hardware("rtx4090", shipped()).device;
  CHECK(device.memory_bytes == 24_GiB);
  CHECK(least_batch(model_shape("llama3.1-8b"), device, 2048) == 6);
  CHECK(least_batch(model_shape("qwen3-235b-a22b"), device, 2048) == 77);
}

TEST_CASE("a file may say what products sustain, up to the peak") {
  TemporaryFolder const folder;
  auto json = whole();
  json["sustained_tflops"] = 1.25;
  std::ofstream(folder.path / "card.json") << json;
  CHECK(read_hardware("card", folder.path).sustained_flops_per_second == doctest::Approx(1.25e12));
  json["sustained_tflops"] = 1.75;
  std::ofstream(folder.path / "card.json") << json;
  CHECK(error_of([&] { (void)read_hardware("card", folder.path); }).code() ==
        Errc::invalid_argument);
}

TEST_CASE("a file may say what the host's memory carries, and how fast peers are") {
  TemporaryFolder const folder;
  auto json = whole();
  auto const device = [&] {
    std::ofstream(folder.path / "card.json") << json;
    return read_hardware("card", folder.path).device;
  };
  CHECK(device().host_bytes_per_second == 0);  // unknown
  CHECK(device().host_download_bytes_per_second == 0);
  CHECK_FALSE(device().reaches_peers);
  json["link"]["host_gbps"] = 7;
  json["link"]["host_up_gbps"] = 6;
  json["link"]["host_down_gbps"] = 5;
  json["link"]["peer_gbps"] = 8;
  CHECK(device().host_bytes_per_second == doctest::Approx(7e9));
  CHECK(device().host_upload_bytes_per_second == doctest::Approx(6e9));
  CHECK(device().host_download_bytes_per_second == doctest::Approx(5e9));
  CHECK(device().peer_bytes_per_second == doctest::Approx(8e9));
  CHECK(device().reaches_peers);
}

TEST_CASE("the refusal of an unknown name lists the folder's names") {
  TemporaryFolder const folder;
  std::ofstream(folder.path / "b.json") << whole();
  std::ofstream(folder.path / "a.json") << whole();
  std::ofstream(folder.path / "notes.txt") << "none";
  auto const error = error_of([&] { (void)read_hardware("c", folder.path); });
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(error.message() ==
        "no hardware is called 'c'; " + folder.path.string() + " has a, b; or give a file *.json");
  auto const missing = error_of([&] { (void)read_hardware("c", folder.path / "missing"); });
  CHECK(missing.message().find("missing has none;") != std::string::npos);
}

TEST_CASE("the refusal of a missing file, or of a folder, names it") {
  TemporaryFolder const folder;
  auto const path = (folder.path / "card.json").string();
  auto const absent = error_of([&] { (void)read_hardware(path, {}); });
  CHECK(absent.code() == std::errc::no_such_file_or_directory);
  CHECK(absent.message() == "cannot read '" + path + "'");
  std::filesystem::create_directories(path);
  CHECK(error_of([&] { (void)read_hardware(path, {}); }).code() == std::errc::is_a_directory);
}

TEST_CASE("text that does not describe hardware is refused in one line") {
  CHECK(refusal(std::string()).find("parse error") != std::string::npos);
  CHECK(refusal(std::string("{\"name\": \n")).find("parse error") != std::string::npos);
  CHECK(refusal(std::string("{\"tflops\": 1e999}")).find("number overflow") != std::string::npos);
  CHECK(refusal(std::string("[]")) == "is not a JSON object");
}

TEST_CASE("every key must be there, and no other") {
  for (auto const* key : {"name", "tflops", "memory_gib", "memory_gbps", "link", "source"}) {
    auto json = whole();
    json.erase(key);
    CHECK(refusal(json) == "has no '" + std::string(key) + "'");
  }
  for (auto const* key : {"up_gbps", "down_gbps", "latency_us"}) {
    auto json = whole();
    json["link"].erase(key);
    CHECK(refusal(json) == "'link': has no '" + std::string(key) + "'");
  }
  auto json = whole();
  json["t\nflop"] = 1;
  CHECK(refusal(json) == "has a key \"t\\nflop\", which is unknown here");
  json = whole();
  json["link"] = 32;
  CHECK(refusal(json) == "'link': is not a JSON object");
}

TEST_CASE("figures must be positive numbers, and names must be strings") {
  for (auto const* key : {"tflops", "memory_gib", "memory_gbps"}) {
    auto json = whole();
    json[key] = -1;
    CHECK(refusal(json) ==
          "'" + std::string(key) + "' is -1, but must be a number above 0 up to 1e9");
    json[key] = 0;
    CHECK(refusal(json).find("' is 0,") != std::string::npos);
    json[key] = 2e9;
    CHECK(refusal(json).find("up to 1e9") != std::string::npos);
    json[key] = "many";
    CHECK(refusal(json).find("' is a JSON string,") != std::string::npos);
    json[key] = nullptr;
    CHECK(refusal(json).find("' is a JSON null,") != std::string::npos);
  }
  for (auto const* key : {"up_gbps", "down_gbps"}) {
    auto json = whole();
    json["link"][key] = 0;
    CHECK(refusal(json) ==
          "'link': '" + std::string(key) + "' is 0, but must be a number above 0 up to 1e9");
  }
  auto json = whole();
  json["link"]["latency_us"] = -0.5;
  CHECK(refusal(json) == "'link': 'latency_us' is -0.5, but must be a number from 0 up to 1e9");
  for (auto const* key : {"name", "source"}) {
    json = whole();
    json[key] = "";
    CHECK(refusal(json) == "'" + std::string(key) + "' must be a string");
    json[key] = 7;
    CHECK(refusal(json) == "'" + std::string(key) + "' must be a string");
  }
}

}  // namespace plan_pipeline_hardware_test
