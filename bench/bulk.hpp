// What the drivers of UDT and SRT share: arguments, sizes, the loop of the sender, and the meter of the receiver.
//
//     udt-bulk receive ADDRESS PORT --window BYTES (--seconds N | --bytes N)
//     udt-bulk send    ADDRESS PORT --window BYTES [--bytes N]
//
// The receiver prints "listening", then "interval END_SECONDS BYTES" every 0.1 s from when the connection is up, and ends when the time is over or
// all bytes are there. The sender sends until the receiver goes away, or all bytes have left.
//
//     udt-bulk version
#pragma once

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace bulk {

constexpr int kChunkBytes = 1 << 20;
constexpr int kUdpBufferBytes = 32 << 20;
// Of a packet of 1500 bytes.
constexpr int kPayloadBytes = 1456;

struct Plan {
    bool receives = false;
    sockaddr_in address{};
    int64_t window_bytes = 16 << 20;
    double seconds = std::numeric_limits<double>::infinity();
    uint64_t bytes = std::numeric_limits<uint64_t>::max();
};

[[noreturn]] inline void fail(const std::string& message) {
    std::fprintf(stderr, "error: %s\n", message.c_str());
    std::_Exit(2);
}

inline Plan parse(int argc, char** argv, const std::string& version) {
    if (argc == 2 && std::string(argv[1]) == "version") {
        std::puts(version.c_str());
        std::exit(0);
    }
    if (argc < 4) fail("usage: (receive | send) ADDRESS PORT [--window BYTES] [--seconds N] [--bytes N]");
    Plan plan;
    plan.receives = std::string(argv[1]) == "receive";
    plan.address.sin_family = AF_INET;
    plan.address.sin_port = htons(static_cast<uint16_t>(std::atoi(argv[3])));
    if (inet_pton(AF_INET, argv[2], &plan.address.sin_addr) != 1) fail(std::string("no IPv4 address: ") + argv[2]);
    for (int i = 4; i + 1 < argc; i += 2) {
        const std::string option = argv[i];
        if (option == "--window") plan.window_bytes = std::atoll(argv[i + 1]);
        else if (option == "--seconds") plan.seconds = std::atof(argv[i + 1]);
        else if (option == "--bytes") plan.bytes = std::strtoull(argv[i + 1], nullptr, 10);
        else fail("unknown option " + option);
    }
    return plan;
}

// Buffers are counted in `int` by both libraries.
inline int as_int(int64_t bytes) {
    return static_cast<int>(std::min<int64_t>(bytes, std::numeric_limits<int>::max() - 65536));
}

inline int window_pkts(const Plan& plan) { return std::max(25600, as_int(plan.window_bytes) / kPayloadBytes); }

inline void tell_listening() {
    std::puts("listening");
    std::fflush(stdout);
}

// Gives `push` (which takes a buffer and its length, and returns what it took, or less than 0) all bytes; whether it took them.
template <typename Push>
bool pump(const Plan& plan, Push push) {
    const std::vector<char> chunk(kChunkBytes, '\x5a');
    for (uint64_t left = plan.bytes; left > 0;) {
        const int sent = push(chunk.data(), static_cast<int>(std::min<uint64_t>(left, kChunkBytes)));
        if (sent < 0) return false;
        left -= static_cast<uint64_t>(sent);
    }
    return true;
}

// Prints what `receive` (which takes a buffer and its length, and returns bytes, or 0 at the end) brings, and ends the program.
template <typename Receive>
[[noreturn]] void meter(const Plan& plan, Receive receive) {
    using Clock = std::chrono::steady_clock;
    static std::atomic<uint64_t> arrived{0};
    static std::atomic<bool> ended{false};
    const auto start = Clock::now();
    std::thread reader([receive]() mutable {
        std::vector<char> buffer(kChunkBytes);
        for (;;) {
            const int64_t bytes = receive(buffer.data(), kChunkBytes);
            if (bytes <= 0) break;
            arrived.fetch_add(static_cast<uint64_t>(bytes), std::memory_order_relaxed);
        }
        ended = true;
    });
    reader.detach();
    uint64_t told = 0;
    bool over = false;
    for (int tick = 1; !over; ++tick) {
        const double due = std::min(tick * 0.1, plan.seconds);
        std::this_thread::sleep_until(start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(due)));
        over = due >= plan.seconds || ended || arrived >= plan.bytes;
        const double at = std::chrono::duration<double>(Clock::now() - start).count();
        const uint64_t now = arrived;
        std::printf("interval %.4f %llu\n", at, static_cast<unsigned long long>(now - told));
        std::fflush(stdout);
        told = now;
    }
    // The libraries' threads are at work: no destructors.
    std::_Exit(0);
}

}  // namespace bulk
