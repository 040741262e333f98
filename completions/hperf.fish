complete -c hperf -s c -l client -d 'Measure against a running server' -r -f -a "(__fish_print_hostnames)"
complete -c hperf -s p -l port -d 'Port of the server: UDP, and TCP of the same number for --tcp' -r
complete -c hperf -s B -l bind -d 'Local address to listen on or to connect from' -r
complete -c hperf -s t -l time -d 'Measure for so long' -r
complete -c hperf -s n -l bytes -d 'Send so many bytes instead' -r
complete -c hperf -s O -l omit -d 'Leave out the first seconds' -r
complete -c hperf -s P -l parallel -d 'Streams in parallel: of one connection with haul, connections with --tcp' -r
complete -c hperf -s b -l bitrate -d 'What each stream sends at most; without it, or with 0, as much as the path bears' -r
complete -c hperf -s l -l length -d 'Bytes handed to the transport at once' -r
complete -c hperf -l mode -d 'How to share the path with others: fair, quickstart, modest, aggressive, reno, cubic, highspeed, scalable, bic, fast, udt, bbr, ledbat or fixed:RATE. The default is fair' -r
complete -c hperf -l congestion -d 'The kernel\'s congestion control for --tcp, for instance cubic or bbr' -r
complete -c hperf -s i -l interval -d 'Seconds between reports, fractions too; a file name here is a key for ssh, as in haul-cp(1)' -r
complete -c hperf -s T -l title -d 'Put this before every line' -r
complete -c hperf -l max-clients -d 'Clients at once' -r
complete -c hperf -l max-time -d 'The longest measurement' -r
complete -c hperf -l max-memory -d 'Memory for each client, at most' -r
complete -c hperf -l max-bitrate -d 'What is sent to each client at most' -r
complete -c hperf -l key -d 'Believe only the server with this key' -r
complete -c hperf -l ssh-port -d 'Port of the ssh server' -r
complete -c hperf -l jump -d 'Log in by way of another host (ssh\'s -J)' -r
complete -c hperf -s F -d 'Configuration file for ssh' -r -F
complete -c hperf -s o -d 'Option in the form of ssh_config(5)' -r
complete -c hperf -s S -d 'Program to use in place of ssh' -r
complete -c hperf -l remote-haul -d 'haul\'s path on the far side, where its PATH does not have it' -r
complete -c hperf -l udp-port -d 'Port or ports that the far side may use' -r
complete -c hperf -l state -d 'Directory of the identity key and the known hosts, for haul:// hosts' -r -F
complete -c hperf -s s -l server -d 'Run a server, until it is interrupted'
complete -c hperf -s R -l reverse -d 'The server sends'
complete -c hperf -l bidir -d 'Both sides send at once'
complete -c hperf -l tcp -d 'Measure the kernel\'s TCP instead'
complete -c hperf -s J -l json -d 'Print one JSON document, in iperf3\'s form'
complete -c hperf -l json-stream -d 'Print JSON as it comes, an event a line'
complete -c hperf -l get-server-output -d 'Show the server\'s own output too'
complete -c hperf -s v -l verbose -d 'Say more; twice, and ssh says more too'
complete -c hperf -s 1 -l one-off -d 'Serve one client, then end'
complete -c hperf -s 4 -d 'Use IPv4 only'
complete -c hperf -s 6 -d 'Use IPv6 only'
complete -c hperf -s h -l help -d 'Print help (see more with \'--help\')'
