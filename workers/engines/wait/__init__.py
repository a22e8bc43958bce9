"""The engine `wait`: takes the time that its workload asks for, and computes nothing."""
