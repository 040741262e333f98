// Bulk transfer by SRT in its file mode (Debian's libsrt), memory to memory and in clear text: haul is measured beside it.
#include <netinet/in.h>
#include <srt/srt.h>

#include "../bulk.hpp"

namespace {

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
    set(socket, SRTO_FC, bulk::window_pkts(plan));
    set(socket, SRTO_SNDBUF, bulk::as_int(plan.window_bytes));
    set(socket, SRTO_RCVBUF, bulk::as_int(plan.window_bytes));
    set(socket, SRTO_UDP_SNDBUF, bulk::kUdpBufferBytes);
    set(socket, SRTO_UDP_RCVBUF, bulk::kUdpBufferBytes);
    return socket;
}

void receive(const bulk::Plan& plan) {
    const SRTSOCKET listener = open(plan);
    check(srt_bind(listener, reinterpret_cast<const sockaddr*>(&plan.address), sizeof plan.address), "bind");
    check(srt_listen(listener, 1), "listen");
    bulk::tell_listening();
    const SRTSOCKET connection = srt_accept(listener, nullptr, nullptr);
    if (connection == SRT_INVALID_SOCK) bulk::fail(std::string("accept: ") + srt_getlasterror_str());
    bulk::meter(plan, [connection](char* buffer, int length) -> int64_t { return srt_recv(connection, buffer, length); });
}

void send(const bulk::Plan& plan) {
    const SRTSOCKET socket = open(plan);
    check(srt_connect(socket, reinterpret_cast<const sockaddr*>(&plan.address), sizeof plan.address), "connect");
    const bool all = bulk::pump(plan, [socket](const char* buffer, int length) { return srt_send(socket, buffer, length); });
    // Waits until what is in the buffer has arrived.
    if (all) srt_close(socket);
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
