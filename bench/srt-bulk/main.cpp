// Bulk transfer by SRT in its file mode (Debian's libsrt), memory to memory and in clear text: haul is measured beside it.
#include <netinet/in.h>
#include <srt/srt.h>

#include <algorithm>
#include <vector>

#include "../bulk.hpp"

namespace {

constexpr int kChunkBytes = 1 << 20;
constexpr int kPayloadBytes = 1456;
constexpr int kUdpBufferBytes = 32 << 20;

void check(int result, const char* what) {
    if (result == SRT_ERROR) bulk::fail(std::string(what) + ": " + srt_getlasterror_str());
}

template <typename T>
void set(SRTSOCKET socket, SRT_SOCKOPT option, T value) {
    check(srt_setsockflag(socket, option, &value, sizeof value), "setsockflag");
}

SRTSOCKET open(const bulk::Plan& plan) {
    const SRTSOCKET socket = srt_create_socket();
    // File mode: a stream, its congestion control, no limit of latency.
    set(socket, SRTO_TRANSTYPE, SRTT_FILE);
    // The window in packets comes first: the receive buffer is limited to it.
    set(socket, SRTO_FC, std::max(25600, bulk::as_int(plan.window_bytes) / kPayloadBytes));
    set(socket, SRTO_SNDBUF, bulk::as_int(plan.window_bytes));
    set(socket, SRTO_RCVBUF, bulk::as_int(plan.window_bytes));
    set(socket, SRTO_UDP_SNDBUF, kUdpBufferBytes);
    set(socket, SRTO_UDP_RCVBUF, kUdpBufferBytes);
    return socket;
}

void receive(const bulk::Plan& plan) {
    const SRTSOCKET listener = open(plan);
    check(srt_bind(listener, reinterpret_cast<const sockaddr*>(&plan.address), sizeof plan.address), "bind");
    check(srt_listen(listener, 1), "listen");
    std::puts("listening");
    std::fflush(stdout);
    const SRTSOCKET connection = srt_accept(listener, nullptr, nullptr);
    if (connection == SRT_INVALID_SOCK) bulk::fail(std::string("accept: ") + srt_getlasterror_str());
    bulk::meter(plan, [connection, buffer = std::vector<char>(kChunkBytes)]() mutable -> int64_t {
        return srt_recv(connection, buffer.data(), kChunkBytes);
    });
}

void send(const bulk::Plan& plan) {
    const SRTSOCKET socket = open(plan);
    check(srt_connect(socket, reinterpret_cast<const sockaddr*>(&plan.address), sizeof plan.address), "connect");
    const std::vector<char> chunk(kChunkBytes, '\x5a');
    for (uint64_t left = plan.bytes; left > 0;) {
        const int length = static_cast<int>(std::min<uint64_t>(left, kChunkBytes));
        const int sent = srt_send(socket, chunk.data(), length);
        if (sent == SRT_ERROR) return;
        left -= static_cast<uint64_t>(sent);
    }
    // Waits until what is in the buffer has arrived.
    srt_close(socket);
}

std::string version() {
    const uint32_t number = srt_getversion();
    return std::to_string(number >> 16) + "." + std::to_string(number >> 8 & 0xff) + "." + std::to_string(number & 0xff);
}

}  // namespace

int main(int argc, char** argv) {
    const bulk::Plan plan = bulk::parse(argc, argv, "SRT " + version());
    srt_startup();
    plan.receives ? receive(plan) : send(plan);
    srt_cleanup();
}
