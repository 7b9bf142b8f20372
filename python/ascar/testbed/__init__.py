"""Testbeds: servers, disks, clients and their network on one machine, started and ended as a whole."""
