"""Testbeds: servers, disks, clients and what is between them, on one machine, started and ended as a whole."""
