"""Testbeds: servers, disks, clients and links on one machine, started and ended as a whole."""
